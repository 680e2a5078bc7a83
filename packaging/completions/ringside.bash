# bash completion for ringside(1).

_ringside() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'run check version help --help --version' -- "$current")
    return
  fi
  case ${COMP_WORDS[1]} in
    run | check)
      if [[ $current == -* && $previous != -c && $previous != --config ]]; then
        mapfile -t COMPREPLY < <(compgen -W '-c --config -h --help' -- "$current")
      else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$current"; compgen -d -- "$current")
      fi
      ;;
    version)
      mapfile -t COMPREPLY < <(compgen -W '-v --verbose -h --help' -- "$current")
      ;;
    help)
      mapfile -t COMPREPLY < <(compgen -W 'run check version' -- "$current")
      ;;
  esac
}
complete -F _ringside ringside
