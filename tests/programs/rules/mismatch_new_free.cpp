// new and free.
#include <cstdlib>

int main() {
    int *p = new int(3);
#ifdef FIXED
    delete p;
#else
    std::free(p); // FINDS mismatched-free
#endif
    return 0;
}
