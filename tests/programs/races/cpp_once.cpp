// finds: data-race
// std::call_once, or a bool.
#include "twin.h"
#include <mutex>
#include <thread>
static std::once_flag once;
static bool made;
static int value;
static void work()
{
    TWIN(if (!made) { value = 7; made = true; }, std::call_once(once, [] { value = 7; }));
    sink(value);
}
int main()
{
    std::thread first(work), second(work);
    first.join();
    second.join();
}
