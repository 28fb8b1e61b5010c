// finds: data-race
// Threads copy one std::shared_ptr, whose count is atomic; the racy one sets the pointer meanwhile.
#include "twin.h"
#include <memory>
#include <thread>
static std::shared_ptr<int> pointer = std::make_shared<int>(7);
static void look()
{
    for (int i = 0; i < 20; i++) {
        std::shared_ptr<int> own = pointer;
        sink(*own);
    }
}
static void other()
{
    for (int i = 0; i < 20; i++) {
        TWIN(pointer = std::make_shared<int>(i), std::shared_ptr<int> own = pointer; sink(*own));
    }
}
int main()
{
    std::thread first(look), second(other);
    first.join();
    second.join();
}
