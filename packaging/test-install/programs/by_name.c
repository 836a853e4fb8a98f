/* Loads the library by its name, as bindings do, and looks up every function that is named. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* C knows no way from a pointer to data to one to a function; POSIX says that both are alike. */
static int version_of(void *symbol, const char **version)
{
    const char *(*function)(void);

    memcpy(&function, &symbol, sizeof(function));
    *version = function();
    return 0;
}

int main(int count, char **names)
{
    void *library = dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
    const char *version = NULL;

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (int i = 2; i < count; i++) {
        if (dlsym(library, names[i]) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    version_of(dlsym(library, "RedLock_Version"), &version);
    printf("%s\n", version);
    return dlclose(library);
}
