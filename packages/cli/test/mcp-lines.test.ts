import { expect, test } from 'vitest'
import { exampleAgents, skein, tempFolder } from './kit.ts'

test('skein mcp answers a line that is too long with an error, and serves the next one', async () => {
  const message = 'x'.repeat(1024 * 1024)
  const call = { method: 'tools/call', params: { name: 'ask', arguments: { message } } }
  const input = [
    { ...call, jsonrpc: '2.0', id: 'long' },
    { result: { content: message }, jsonrpc: '2.0', id: 9 }, // an answer of the client, which gets none
    { jsonrpc: '2.0', id: 7, method: 'ping' },
  ]
    .map((one) => `${JSON.stringify(one)}\n`)
    .join('')
  const args = ['mcp', exampleAgents, '--agent', 'support']
  const { code, stdout, stderr } = await skein(args, { cwd: tempFolder(), input })
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: unknown })
  expect(lines).toContainEqual({ jsonrpc: '2.0', id: 7, result: {} })
  expect(lines).toContainEqual({
    jsonrpc: '2.0',
    id: 'long',
    error: { code: -32000, message: expect.stringContaining('1048576 bytes') as string },
  })
  expect(lines).toHaveLength(2)
  expect(stderr).toContain('1048576 bytes')
  expect(code).toBe(0)
}, 60_000)

test('skein mcp answers what is no message, long or short, with an error that names no request', async () => {
  const ping = { jsonrpc: '2.0', id: 'a', method: 'ping' }
  const params = { text: 'x'.repeat(1024 * 1024) }
  const lines = [
    `{"jsonrpc":"2.0","id":1,"method":"ping","text":"${params.text}`, // cut off
    JSON.stringify([{ ...ping, params }]),
    JSON.stringify([ping]),
  ]
  const input = [...lines, JSON.stringify(ping)].join('\n')
  const args = ['mcp', exampleAgents, '--agent', 'support']
  const { stdout } = await skein(args, { cwd: tempFolder(), input })
  const ids = stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: unknown }).id)
  expect(ids.toSorted()).toEqual(['a', null, null, null])
}, 60_000)
