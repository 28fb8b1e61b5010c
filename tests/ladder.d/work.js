// JIT-friendly loops, closures, regular expressions, JSON, promises, typed arrays, crypto, a child.
const fs = require('fs'), crypto = require('crypto'), { execFileSync } = require('child_process');
const data = JSON.parse(fs.readFileSync(process.argv[2]));
console.log(data.length, data.reduce((a, b) => (a * 31 + b.value) % 1000003, 7));
let x = 1;
for (let i = 0; i < 3e6; i++) x = (Math.imul(x, 31) + i) | 0;
console.log(x);
const floats = new Float64Array(100000).map((_, i) => Math.sin(i));
console.log(floats.reduce((a, b) => a + b).toFixed(9));
class Shape { area() { return 0; } }
class Square extends Shape { constructor(s) { super(); this.s = s; } area() { return this.s * this.s; } }
class Disc extends Shape { constructor(r) { super(); this.r = r; } area() { return 3 * this.r * this.r; } }
const shapes = Array.from({ length: 20000 }, (_, i) => (i % 2 ? new Square(i) : new Disc(i)));
console.log(shapes.reduce((a, s) => a + s.area(), 0));
console.log('a-1 b-22'.replace(/(\w)-(\d+)/g, '$2:$1'), crypto.createHash('sha256').update('text').digest('hex').slice(0, 16));
const map = new Map();
for (let i = 0; i < 50000; i++) map.set(`k${i % 997}`, (map.get(`k${i % 997}`) || 0) + i);
console.log(map.size, map.get('k5'));
try { null.property; } catch (error) { console.log(error.constructor.name); }
console.log(execFileSync('echo', ['child']).toString().trim());
function* numbers() { for (let i = 0; i < 1000; i++) yield i; }
console.log([...numbers()].filter((n) => n % 7 === 0).length, 2n ** 200n % 1000007n);
setTimeout(() => console.log('timer'), 10);
Promise.all([1, 2, 3].map(async (n) => n * 2)).then((all) => console.log(all.join()));
