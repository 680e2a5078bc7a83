# What each script needs from Debian 12. Source common.sh first.
# shellcheck shell=bash disable=SC2034

# To build ringside with g++.
build_packages=(g++ meson ninja-build pkg-config ccache liburing-dev libssl-dev libnghttp2-dev
  libsimdjson-dev libtomlplusplus-dev libgtest-dev libgmock-dev
  libbenchmark-dev)

# To build with the sanitizers, and for the style and tidy stages.
clang_packages=(clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev llvm-19 lld-19)

# The peers that ringside is tested against, and what drives them.
peer_packages=(curl nginx nghttp2-client nghttp2-server wrk python3 python3-websockets python3-h2 python3-grpcio chromium shellcheck
  procps ca-certificates git valgrind slowhttptest openssl gnutls-bin testssl.sh
  libnss3-tools golang-go nodejs default-jdk-headless)
