/* Makes chosen calls of the C library fail, or sends a signal there. Preloaded into the process that is tested.

   inject_arm(root, kinds, at, error, number, on) lets the calls of these `kinds` (a bit each, see KINDS) that touch a
   path under `root` count from 1. The one with the number `at`, or all from it on, fails with `error`; or it gets the
   signal `number` first. With at = 0 the calls are only counted, and their kinds are kept in `inject_kinds`. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN, CREATE, WRITE, FSYNC, RENAME, LINK, UNLINK, CLOSE, MKDIR, RMDIR, TRUNCATE, KINDS };

static char root[4096];
static unsigned kinds;
static long at;
static int error, number, on;
static long count, last;
unsigned char inject_kinds[1 << 16];

void inject_arm(const char *new_root, unsigned new_kinds, long new_at, int new_error, int new_number, int new_on) {
    strncpy(root, new_root, sizeof root - 1);
    kinds = new_kinds, at = new_at, error = new_error, number = new_number, on = new_on;
    last = __atomic_exchange_n(&count, 0, __ATOMIC_SEQ_CST);
}

/* How many calls there were before it was armed again. */
long inject_last(void) { return last; }

static int under(const char *path) {
    size_t size = strlen(root);
    return strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static int handle_under(int handle) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return under(path);
}

static int path_under(int folder, const char *path) {
    if (!root[0] || !path) return 0;
    if (path[0] == '/') return under(path);
    if (folder != AT_FDCWD) return handle_under(folder);
    char here[4096];
    return syscall(SYS_getcwd, here, sizeof here) > 0 && under(here);
}

/* Returns whether the call must fail; errno is set then. */
static int hit(int kind, int touches) {
    if (!touches || !(kinds >> kind & 1)) return 0;
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (now < (long)sizeof inject_kinds) inject_kinds[now] = kind;
    if (!at || now < at || (now > at && !on)) return 0;
    if (number) syscall(SYS_kill, syscall(SYS_getpid), number);
    if (error) errno = error;
    return error != 0;
}

#define SAVED(body) ({ int saved = errno; __typeof__(body) given = (body); errno = saved; given; })
#define TOUCHES(folder, path) SAVED(path_under(folder, path))
#define HOLDS(handle) (root[0] ? SAVED(handle_under(handle)) : 0)
#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (hit(flags & O_CREAT ? CREATE : OPEN, TOUCHES(AT_FDCWD, path))) return -1; \
        return real(path, flags, mode); \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (hit(flags & O_CREAT ? CREATE : OPEN, TOUCHES(folder, path))) return -1; \
        return real(folder, path, flags, mode); \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int handle, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return hit(WRITE, HOLDS(handle)) ? -1 : real(handle, data, size);
}

#define PWRITES(name, offset) \
    ssize_t name(int handle, const void *data, size_t size, offset start) { \
        REAL(ssize_t, #name, int, const void *, size_t, offset); \
        return hit(WRITE, HOLDS(handle)) ? -1 : real(handle, data, size, start); \
    }
PWRITES(pwrite, off_t)
PWRITES(pwrite64, off64_t)

#define BY_HANDLE(name, kind) \
    int name(int handle) { \
        REAL(int, #name, int); \
        return hit(kind, HOLDS(handle)) ? -1 : real(handle); \
    }
BY_HANDLE(fsync, FSYNC)
BY_HANDLE(fdatasync, FSYNC)

int close(int handle) { /* the handle is gone, even if closing fails */
    REAL(int, "close", int);
    int fails = hit(CLOSE, HOLDS(handle)), why = errno, closed = real(handle);
    if (!fails) return closed;
    errno = why;
    return -1;
}

#define TRUNCATES(name, offset) \
    int name(int handle, offset size) { \
        REAL(int, #name, int, offset); \
        return hit(TRUNCATE, HOLDS(handle)) ? -1 : real(handle, size); \
    }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

#define TWO_PATHS(name, kind) \
    int name(const char *old, const char *new) { \
        REAL(int, #name, const char *, const char *); \
        return hit(kind, TOUCHES(AT_FDCWD, new) || TOUCHES(AT_FDCWD, old)) ? -1 : real(old, new); \
    }
TWO_PATHS(rename, RENAME)
TWO_PATHS(link, LINK)

int renameat(int from, const char *old, int to, const char *new) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return hit(RENAME, TOUCHES(to, new) || TOUCHES(from, old)) ? -1 : real(from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    return hit(RENAME, TOUCHES(to, new) || TOUCHES(from, old)) ? -1 : real(from, old, to, new, flags);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return hit(LINK, TOUCHES(to, new) || TOUCHES(from, old)) ? -1 : real(from, old, to, new, flags);
}

#define ONE_PATH(name, kind) \
    int name(const char *path) { \
        REAL(int, #name, const char *); \
        return hit(kind, TOUCHES(AT_FDCWD, path)) ? -1 : real(path); \
    }
ONE_PATH(unlink, UNLINK)
ONE_PATH(rmdir, RMDIR)

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return hit(flags & AT_REMOVEDIR ? RMDIR : UNLINK, TOUCHES(folder, path)) ? -1 : real(folder, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return hit(MKDIR, TOUCHES(AT_FDCWD, path)) ? -1 : real(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    return hit(MKDIR, TOUCHES(folder, path)) ? -1 : real(folder, path, mode);
}
