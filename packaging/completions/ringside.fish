# fish completion for ringside(1).

set -l commands run check version help

complete -c ringside -f
complete -c ringside -n "not __fish_seen_subcommand_from $commands" -a run -d 'Serve in the foreground'
complete -c ringside -n "not __fish_seen_subcommand_from $commands" -a check -d 'Read the configuration and report every mistake'
complete -c ringside -n "not __fish_seen_subcommand_from $commands" -a version -d 'Print the version'
complete -c ringside -n "not __fish_seen_subcommand_from $commands" -a help -d 'Print help'
complete -c ringside -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'Print the version'
complete -c ringside -s h -l help -d 'Print help'
complete -c ringside -n "__fish_seen_subcommand_from run check" -s c -l config -r -F -d 'The configuration'
complete -c ringside -n "__fish_seen_subcommand_from run check" -F
complete -c ringside -n "__fish_seen_subcommand_from version" -s v -l verbose -d 'Also libraries and kernel'
complete -c ringside -n "__fish_seen_subcommand_from help" -a 'run check version'
