// build: -O1 -static
// Virtual calls, multiple inheritance with thunks, pointers to members, dynamic_cast.
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};
struct Named {
    virtual ~Named() = default;
    virtual int letters() const { return 3; }
};
struct Square : Shape, Named {
    int side;
    explicit Square(int of) : side(of) {}
    int area() const override { return side * side; }
    int letters() const override { return 6 + side; }
};
struct Strip : Shape {
    int length;
    explicit Strip(int of) : length(of) {}
    int area() const override { return length; }
};

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 20; i++) {
        if (i % 3) shapes.push_back(std::make_unique<Square>(i));
        else shapes.push_back(std::make_unique<Strip>(i));
    }
    int sum = 0;
    int (Shape::*measure)() const = &Shape::area;
    for (const auto &shape : shapes) {
        sum += ((*shape).*measure)();
        if (auto *named = dynamic_cast<Named *>(shape.get())) sum += named->letters();
    }
    return sum & 127;
}
