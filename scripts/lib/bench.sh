# What bench-oha and bench-h2load share. Source it after common.sh; it changes no shell options.
# shellcheck shell=bash

bench_child=''

# An end of the script, by whatever reason, is the end of the load.
stop_bench() {
  [ -z "$bench_child" ] || kill -TERM "$bench_child" 2>/dev/null || true
}

is_number() { [[ $1 =~ ^[0-9]+$ ]] && [ "$1" -gt 0 ]; }

# need_number OPTION VALUE
need_number() {
  is_number "${2:-}" || {
    echo "${0##*/}: $1 takes a number from 1, not '${2:-}'" >&2
    exit 2
  }
}

# cargo installs here, which is not always in the path.
find_program() {
  command -v "$1" 2>/dev/null && return 0
  if [ -x "$HOME/.cargo/bin/$1" ]; then
    echo "$HOME/.cargo/bin/$1"
    return 0
  fi
  return 1
}

is_local() { [[ $1 =~ ^https?://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/|\?|$) ]]; }

# The process whose CPU time is to be counted: the one that was named, or the only one called
# ringside if the URL is on this machine. Prints nothing, and the reason on stderr, if there is none.
process_for() {
  local pid=$1 url=$2 found
  if [ -n "$pid" ]; then
    [ -r "/proc/$pid/stat" ] || die "there is no process $pid"
    echo "$pid"
    return 0
  fi
  if ! is_local "$url"; then
    echo "(no CPU time: the server is not on this machine)" >&2
    return 0
  fi
  mapfile -t found < <(pgrep -x ringside || true)
  case ${#found[@]} in
    1) echo "${found[0]}" ;;
    0) echo "(no CPU time: no process is called ringside; --pid names another)" >&2 ;;
    *) echo "(no CPU time: several processes are called ringside: ${found[*]}; --pid names one)" >&2 ;;
  esac
}

# User and system time of all threads of a process, kernel workers of io_uring too, in clock ticks.
cpu_ticks() {
  local line fields
  line=$(cat "/proc/$1/stat" 2>/dev/null) || { echo 0; return; }
  read -ra fields <<<"${line##*) }"
  echo $((fields[11] + fields[12]))
}

# run_for SECONDS OUTPUT COMMAND...: runs it with a clock on the terminal; its status is ours.
run_for() {
  local seconds=$1 output=$2 elapsed=0 status=0
  shift 2
  # Its own end comes first; this is for a server that answers nothing more.
  timeout --kill-after=5 $((seconds + 30)) "$@" >"$output" 2>&1 &
  bench_child=$!
  while kill -0 "$bench_child" 2>/dev/null; do
    if [ -t 2 ] && [ "$elapsed" -le "$seconds" ]; then printf '\r%d of %d s ' "$elapsed" "$seconds" >&2; fi
    sleep 1
    elapsed=$((elapsed + 1))
  done
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  wait "$bench_child" || status=$?
  bench_child=''
  return "$status"
}

# print_cpu PID TICKS REQUESTS SECONDS
print_cpu() {
  local pid=$1 ticks=$2 requests=$3 seconds=$4
  [ -n "$pid" ] && [ "$requests" -gt 0 ] || return 0
  awk -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v requests="$requests" -v pid="$pid" \
    -v seconds="$seconds" 'BEGIN {
    printf "\nCPU of process %d: %.2f s for %d requests, which is %.1f µs a request (%.2f CPUs)\n",
      pid, ticks / hz, requests, ticks / hz * 1e6 / requests, ticks / hz / seconds }'
}
