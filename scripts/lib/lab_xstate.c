// Loaded into the lab's kernel (user-mode Linux 6.1) with LD_PRELOAD: see scripts/lab.
//
// That kernel keeps the vector registers of its processes in buffers whose size was fixed when it
// was built. The host takes a set of them only whole (ptrace(2), PTRACE_SETREGSET with
// NT_X86_XSTATE), so on a CPU with more registers than that, such as one with AMX, setting them
// fails with EFAULT and the kernel kills its first process. Here a shorter set is laid over what
// the process has, which is what was meant.
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { set_bytes_max = 64 * 1024 };

static long set_registers(pid_t pid, struct iovec* given) {
  static _Thread_local char whole[set_bytes_max] __attribute__((aligned(64)));
  struct iovec all = {whole, sizeof whole};
  long result = syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all);
  if (result != 0 || all.iov_len <= given->iov_len)
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, given);
  memcpy(whole, given->iov_base, given->iov_len);
  return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...) {
  va_list arguments;
  va_start(arguments, request);
  pid_t pid = va_arg(arguments, pid_t);
  void* address = va_arg(arguments, void*);
  void* data = va_arg(arguments, void*);
  va_end(arguments);
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE)
    return set_registers(pid, data);
  // The system call gives a word that was read through its last argument, the C function as its
  // result.
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long word = 0;
    return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : word;
  }
  return syscall(SYS_ptrace, request, pid, address, data);
}
