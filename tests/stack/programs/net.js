// SPDX-License-Identifier: BSD-2-Clause
// An echo server by node:net with one by node:http beside it, and their client:
//     node net.js serve PORT             also listens at PORT + 1
//     node net.js connect ADDRESS PORT
'use strict';
const assert = require('node:assert');
const crypto = require('node:crypto');
const http = require('node:http');
const net = require('node:net');
const { once } = require('node:events');

const [command, ...words] = process.argv.slice(2);

async function everything(readable) {
  const chunks = [];
  for await (const chunk of readable) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function serve(port) {
  const stream = net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  const web = http.createServer((request, response) => {
    response.setHeader('x-method', request.method);
    request.pipe(response);
  });
  web.listen(port + 1, '0.0.0.0', () => stream.listen(port, '0.0.0.0'));
  process.on('SIGTERM', () => process.exit(0));
}

async function echo(host, port, size) {
  const data = crypto.randomBytes(size);
  const socket = net.connect({ host, port });
  await once(socket, 'connect');
  assert.strictEqual(socket.remoteAddress, host);
  socket.setNoDelay(true).setKeepAlive(true, 60000);
  socket.end(data);
  assert((await everything(socket)).equals(data));
}

async function post(agent, host, port, size) {
  const data = crypto.randomBytes(size);
  const request = http.request({ agent, host, port, method: 'POST' });
  request.end(data);
  const [response] = await once(request, 'response');
  assert.strictEqual(response.headers['x-method'], 'POST');
  const { localPort } = response.socket;
  assert((await everything(response)).equals(data));
  return localPort;
}

async function refused(host, port) {
  const [error] = await once(net.connect({ host, port }), 'error');
  assert.strictEqual(error.code, 'ECONNREFUSED');
}

async function connect(host, port) {
  await Promise.all([1, 1000, 50000, 400000].map((size) => echo(host, port, size)));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 3 });
  const ports = await Promise.all(Array.from({ length: 20 }, (_, n) => post(agent, host, port + 1, 10000 * n)));
  assert(new Set(ports).size <= agent.maxSockets, `${ports}`);
  agent.destroy();
  await refused(host, port + 2);
  console.log('exchanged');
}

if (command === 'serve') serve(Number(words[0]));
else connect(words[0], Number(words[1]));
