// new[] and delete.
int main() {
    int *p = new int[10];
    p[0] = 1;
#ifdef FIXED
    delete[] p;
#else
    delete p; // FINDS mismatched-free
#endif
    return 0;
}
