// A member is read after delete.
struct Shape {
    virtual ~Shape() = default;
    virtual int area() const { return side * side; }
    int side = 3;
};

int main() {
    Shape *shape = new Shape;
    int area = shape->area();
    delete shape;
#ifdef FIXED
    return area > 100;
#else
    return area + shape->side > 100000000; // FINDS dangling-pointer
#endif
}
