// Worker threads with shared memory and Atomics, an HTTP server on loopback asked 200 times.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const http = require('http');
if (!isMainThread) {
    const cells = new Int32Array(workerData);
    for (let i = 0; i < 20000; i++) Atomics.add(cells, 0, 1);
    parentPort.postMessage('done');
} else {
    const shared = new SharedArrayBuffer(8);
    const workers = [1, 2, 3].map(() => new Promise((resolve) => new Worker(__filename, { workerData: shared }).on('exit', resolve)));
    Promise.all(workers).then(() => {
        console.log(new Int32Array(shared)[0]);
        let answered = 0;
        const server = http.createServer((request, response) => response.end(`hello ${request.url}`));
        server.listen(0, '127.0.0.1', async () => {
            for (let i = 0; i < 200; i++)
                await new Promise((resolve) => http.get({ port: server.address().port, host: '127.0.0.1', path: `/${i}` }, (response) => {
                    let body = '';
                    response.on('data', (part) => (body += part)).on('end', () => { answered += body === `hello /${i}`; resolve(); });
                }));
            console.log(answered);
            server.close();
        });
    });
}
