-- Hot loops for a tracing JIT, tables, strings, closures, coroutines, metatables, pcall.
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(24))
local x = 1
for i = 1, 3000000 do x = (x * 31 + i) % 1000003 end
print(string.format("%d", x))
local t = {}
for i = 1, 50000 do t[i] = (i * 7919) % 10007 end
table.sort(t)
print(t[1], t[25000], t[50000])
local words = {}
for i = 1, 20000 do local w = "w" .. i % 97; words[w] = (words[w] or 0) + i end
print(string.format("%d", words.w5))
local co = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield(i) end return -1 end)
local sum = 0
while true do local v = co(); if v < 0 then break end sum = sum + v end
print(sum)
local P = setmetatable({}, {__index = function(_, k) return k .. "!" end, __call = function(_, a) return a + 1 end})
print(P.hello, P(41), pcall(error, "thrown"))
print(("hello world"):gsub("o", "0"))
local s = 0.0
for i = 1, 500000 do s = s + math.sin(i) * math.sqrt(i) end
print(string.format("%.6f", s))
