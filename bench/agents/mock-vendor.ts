/**
 * A vendor of Chat Completions in a process of its own, for runs of many rounds. The model id says what
 * to play: `rounds-<n>-<c>` asks for c concurrent calls until the history holds n × c results.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const head = { object: 'chat.completion', created: 1, model: 'mock' }
const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }

/** Ids differ, because some know messages by them. */
function whole(id: string, message: object, finish: string): Buffer {
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }]
  return Buffer.from(JSON.stringify({ id: `chatcmpl-${id}`, ...head, choices, usage }))
}

const answer = whole('end', { role: 'assistant', content: 'All is done.', refusal: null }, 'stop')

/** The calls that follow on so many results. */
function ask(done: number, count: number): Buffer {
  const calls = Array.from({ length: count }, (_, index) => ({
    id: `call_${done + index}`,
    type: 'function',
    function: {
      name: `look_up_${index}`,
      arguments: JSON.stringify({ id: done + index, query: 'thread' }),
    },
  }))
  return whole(String(done), { role: 'assistant', content: null, tool_calls: calls }, 'tool_calls')
}

const mark = Buffer.from('"role":"tool"')

function countResults(body: Buffer): number {
  let count = 0
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) count++
  return count
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const [, rounds, calls] = /"model":"rounds-(\d+)-(\d+)"/.exec(body.toString('latin1')) ?? []
    const done = countResults(body)
    const bytes = done < Number(rounds) * Number(calls) ? ask(done, Number(calls)) : answer
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
    response.end(bytes)
  })
})
server.keepAliveTimeout = 60_000
// A contender that is gone, or that failed before it could listen, is no failure of the vendor.
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () =>
  process.send?.((server.address() as AddressInfo).port, undefined, undefined, () => {}),
)
