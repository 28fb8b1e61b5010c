// malloc and delete.
#include <cstdlib>

int main() {
    int *p = static_cast<int *>(std::malloc(sizeof *p));
    *p = 1;
#ifdef FIXED
    std::free(p);
#else
    delete p; // FINDS mismatched-free
#endif
    return 0;
}
