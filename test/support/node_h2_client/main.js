// Speaks HTTP/2 with a server of test/e2e/test_h2_clients.py, all on one connection, and prints what
// each case came to: a line of JSON. usage: node main.js URL [CA-FILE]
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const http2 = require('http2');

const TEN_MB = 10_000_000;
const BESIDE = 20;  // requests beside the slow one

const [url, ca] = process.argv.slice(2);
const hash = data => crypto.createHash('sha256').update(data).digest('hex');

// Reads all of a response.
function collect(stream) {
  return new Promise((done, failed) => {
    const parts = [];
    stream.on('data', part => parts.push(part));
    stream.on('error', failed);
    stream.on('end', () => done(Buffer.concat(parts)));
  });
}

function headOf(stream) {
  return new Promise((done, failed) => {
    stream.on('response', done);
    stream.on('error', failed);
  });
}

async function ask(client, method, path, body, fields = {}) {
  const stream = client.request({':method': method, ':path': path, ...fields}, {endStream: body === undefined});
  const head = headOf(stream);
  const collected = collect(stream);
  if (body !== undefined) stream.end(body);
  return {head: await head, body: await collected};
}

async function get(client) {
  const {head, body} = await ask(client, 'GET', '/hello');
  return {status: head[':status'], protocol: 'HTTP/2.0', body: body.toString()};
}

async function head(client) {
  const got = await ask(client, 'HEAD', '/hello');
  return {status: got.head[':status'], length: Number(got.head['content-length']), body: got.body.toString()};
}

async function post(client) {
  const sent = crypto.randomBytes(TEN_MB);
  const known = await ask(client, 'POST', '/echo', sent, {'content-length': TEN_MB});
  const unknown = await ask(client, 'POST', '/echo', sent);
  return {statuses: [known.head[':status'], unknown.head[':status']],
          same: [known.body.equals(sent), unknown.body.equals(sent)]};
}

async function trailers(client) {
  const stream = client.request({':method': 'POST', ':path': '/trailers'}, {waitForTrailers: true});
  let trailer = '';
  stream.on('wantTrailers', () => stream.sendTrailers({'x-sum': '5'}));
  stream.on('trailers', fields => { trailer = fields['x-seen']; });
  const head = headOf(stream);
  const collected = collect(stream);
  stream.end('hello');
  return {status: (await head)[':status'], body: (await collected).toString(), trailer};
}

async function continued(client) {
  const stream = client.request({':method': 'POST', ':path': '/continue', 'expect': '100-continue'});
  let told = false;
  stream.on('continue', () => { told = true; stream.end('hello'); });
  const head = headOf(stream);
  const body = await collect(stream);
  return {status: (await head)[':status'], told, body: body.toString()};
}

// One response is not read until all of the others are complete.
async function slowReader(client) {
  const slow = client.request({':path': '/large'});  // nobody listens: it is paused
  await headOf(slow);
  const bodies = await Promise.all(Array.from({length: BESIDE}, () => ask(client, 'GET', '/medium')));
  const hashes = bodies.map(one => hash(one.body));
  return {beside: BESIDE, alike: new Set(hashes).size === 1, first: hashes[0], slow: hash(await collect(slow))};
}

async function bothWays(client) {
  const sent = crypto.randomBytes(TEN_MB);
  const [up, down] = await Promise.all([ask(client, 'POST', '/hash', sent), ask(client, 'GET', '/large')]);
  return {up: up.body.toString() === hash(sent), down: hash(down.body)};
}

async function main() {
  const client = http2.connect(url, ca ? {ca: fs.readFileSync(ca)} : {});
  const broken = new Promise((_, failed) => client.on('error', failed));
  const cases = [['get', get], ['head', head], ['post', post], ['trailers', trailers], ['continue', continued],
                 ['slow reader', slowReader], ['both ways', bothWays]];
  for (const [name, run] of cases)
    console.log(JSON.stringify({...await Promise.race([run(client), broken]), case: name}));
  client.close();
}

main().catch(error => { console.error('node_h2_client:', error); process.exit(1); });
