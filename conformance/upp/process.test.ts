/**
 * What a call leaves behind in a real process: exit code 0, nothing unhandled, no socket that keeps
 * the process alive, whatever the caller did with the call.
 */
import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { helloBody } from './support/stub.ts'

const root = join(import.meta.dirname, '../..')
let server: Server
let baseUrl = ''
const sockets = new Set<Socket>()

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      const url = `http://x${request.url}`
      if (url.includes('/fail/')) return void response.writeHead(500).end('{}')
      if (url.includes('/hang/')) return
      const { type, text } = helloBody(url, body)
      response.writeHead(200, { 'content-type': type })
      if (url.includes('/drip/')) return void response.write(text.slice(0, -40))
      if (url.includes('/cut/')) {
        response.write(text.slice(0, -40))
        return void setTimeout(() => request.socket.destroy(), 10)
      }
      response.end(text)
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

interface Outcome {
  readonly code: number | null
  readonly output: string
  readonly ms: number
}

/** Runs a program against the server; it ends by itself or the test fails. */
async function run(path: string, body: string, flags: readonly string[] = []): Promise<Outcome> {
  const program = `
    import { embedding, llm, image, NoRetry, LinearBackoff } from '@skein/ai'
    import anthropic from '@skein/ai/anthropic'
    import openai from '@skein/ai/openai'
    const config = { apiKey: 'sk-test', baseUrl: '${baseUrl}/${path}', retryStrategy: new NoRetry() }
    const model = llm({ model: anthropic('m'), config })
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    ${body}
    console.log('end')
  `
  const start = performance.now()
  const child = spawn(
    process.execPath,
    ['--conditions=@skein/source', '--input-type=module', ...flags, '--eval', program],
    { cwd: join(root, 'packages/ai'), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  return { code, output, ms: performance.now() - start }
}

const programs: readonly (readonly [name: string, path: string, body: string, said: string])[] = [
  [
    'a success: the idle connection lets the process end',
    'ok',
    `console.log((await model.generate('Hi')).response.text)`,
    'Hello\nend\n',
  ],
  [
    'a failure that is handled',
    'fail',
    `await model.generate('Hi').catch((error) => console.log(error.code))
     try { for await (const _ of model.stream('Hi')); } catch (error) { console.log(error.code) }`,
    'PROVIDER_ERROR\nPROVIDER_ERROR\nend\n',
  ],
  [
    'a failure of a stream whose turn no one reads',
    'cut',
    `const stream = model.stream('Hi')
     try { for await (const _ of stream); } catch (error) { console.log(error.code) }
     await sleep(20)`,
    'NETWORK_ERROR\nend\n',
  ],
  [
    'a stream that is left early',
    'drip',
    `for await (const event of model.stream('Hi')) if (event.type === 'text_delta') break
     await sleep(20)`,
    'end\n',
  ],
  [
    'an abort in the body',
    'drip',
    `const stream = model.stream('Hi')
     setTimeout(() => stream.abort(), 30)
     try { for await (const _ of stream); } catch (error) { console.log(error.code) }`,
    'CANCELLED\nend\n',
  ],
  [
    'an abort before the headers',
    'hang',
    `const stream = model.stream('Hi')
     setTimeout(() => stream.abort(), 30)
     try { await stream.turn } catch (error) { console.log(error.code) }`,
    'CANCELLED\nend\n',
  ],
  [
    'a stream that is aborted and never read',
    'hang',
    `const stream = model.stream('Hi')
     stream.turn
     await sleep(20)
     stream.abort()
     await sleep(20)`,
    'end\n',
  ],
  [
    'a time limit',
    'hang',
    `await llm({ model: anthropic('m'), config: { ...config, timeout: 50 } }).generate('Hi')
       .catch((error) => console.log(error.code))`,
    'TIMEOUT\nend\n',
  ],
  [
    'an abort during backoff',
    'fail',
    `const controller = new AbortController()
     const retryStrategy = new LinearBackoff({ delay: 60_000 })
     setTimeout(() => controller.abort(), 50)
     await llm({ model: anthropic('m'), config: { ...config, retryStrategy }, signal: controller.signal })
       .generate('Hi').catch((error) => console.log(error.code))`,
    'CANCELLED\nend\n',
  ],
  [
    'chunked embeddings that fail, are left, or never read',
    'fail',
    `const model2 = embedding({ model: openai('m'), config })
     const texts = Array.from({ length: 10 }, (_, i) => 'text ' + i)
     const options = { chunked: true, batchSize: 2 }
     try { for await (const _ of model2.embed(texts, options)); } catch (error) { console.log(error.code) }
     model2.embed(texts, options).result
     model2.embed(texts, options).abort()
     await model2.embed(texts, { batchSize: 2 }).catch((error) => console.log(error.code))
     await sleep(30)`,
    'PROVIDER_ERROR\nPROVIDER_ERROR\nend\n',
  ],
  [
    'an image stream that fails or is left',
    'fail',
    `const painter = image({ model: openai('m'), config })
     try { for await (const _ of painter.stream('dot')); } catch (error) { console.log(error.code) }
     painter.stream('dot').result
     await sleep(30)`,
    'PROVIDER_ERROR\nend\n',
  ],
]

describe('a process that makes', () => {
  test.each(programs)('%s', { timeout: 15_000 }, async (_name, path, body, said) => {
    const outcome = await run(path, body)
    expect(outcome).toMatchObject({ code: 0, output: said })
    // Nothing waits for an idle connection, a timer or a forgotten body.
    expect(outcome.ms).toBeLessThan(6000)
    await expect.poll(() => sockets.size, { timeout: 1000 }).toBe(0)
  })

  test('all of that with fetch instead of the fast client', { timeout: 15_000 }, async () => {
    const outcome = await run(
      'drip',
      `const viaFetch = llm({ model: anthropic('m'), config: { ...config, fetch } })
       for await (const event of viaFetch.stream('Hi')) if (event.type === 'text_delta') break
       const stream = viaFetch.stream('Hi')
       setTimeout(() => stream.abort(), 30)
       try { for await (const _ of stream); } catch (error) { console.log(error.code) }`,
    )
    expect(outcome).toMatchObject({ code: 0, output: 'CANCELLED\nend\n' })
    await expect.poll(() => sockets.size, { timeout: 1000 }).toBe(0)
  })
})
