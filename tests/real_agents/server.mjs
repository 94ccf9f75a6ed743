// An MCP server with one tool, which is slow or ends. Argument: slow (needs 8 s), ends (at its start), ends-at-work (when
// its tool is called); any other way: it works.
import { createInterface } from 'node:readline';

const way = process.argv[2];
const results = {
    initialize: ({ protocolVersion }) => ({
        protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'badges', version: '1' },
    }),
    'tools/list': () => ({
        tools: [{ name: 'get_badge', description: 'Returns the number of the badge.', inputSchema: { type: 'object', properties: {} } }],
    }),
    'tools/call': () => ({ content: [{ type: 'text', text: 'The badge is 4711.' }] }),
};
if (way === 'ends') {
    console.error('The store of badges is closed.');
    process.exit(7);
}
if (way === 'slow') await new Promise((done) => setTimeout(done, 8000));
for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (way === 'ends-at-work' && method === 'tools/call') process.exit(7);
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method]?.(params) ?? {} }));
}
