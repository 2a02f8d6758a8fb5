import fc from 'fast-check'
import { expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import type { RuntimeLimits } from '../contract/limits.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import { createRuntime } from '../runtime.ts'

/** The result of one call as the model sees it, and the files of the thread with their texts. */
async function runTool(
  execute: () => unknown,
  limits: Partial<RuntimeLimits>,
  toolCallId = 'call_1',
): Promise<{ result: unknown; isError: boolean; files: Record<string, string> }> {
  const model = scripted([calls('fetch_page', {}, { id: toolCallId }), says('Done.')])
  const tool = defineTool({
    name: 'fetch_page',
    description: 'Fetches a page.',
    risk: 'read_only',
    execute: async () => execute() as string,
  })
  const prompt = definePrompt({ name: 'main', prompt: 'Fetch.', model, tools: [tool] })
  const agent = defineAgent({ name: 'reader', sideA: { prompt } })
  const runtime = await createRuntime({ agents: [agent], limits })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'reader' })
  await runtime.threads.run(id, 'Go')
  const [one] = model.requests[1]!.messages.flatMap((message) =>
    message.type === 'tool_result' ? message.results : [],
  )
  const files: Record<string, string> = {}
  for (const { path } of await runtime.threads.files.list(id))
    files[path] = new TextDecoder().decode((await runtime.threads.files.read(id, path)).bytes)
  await runtime.stop()
  return { result: one!.result, isError: one!.isError === true, files }
}

const note =
  /^(?<head>.*)\n\n\[(?<left>\d+) bytes are left out here\. The whole result is in the file (?<path>\S+) of this thread\.\]\n\n(?<tail>.*)$/su

test('property: a result over the limit is in a file; the model gets its beginning and its end', async () => {
  const letters = fc.array(fc.constantFrom('a', 'é', '你', '👋'), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(
      letters,
      fc.integer({ min: -6, max: 6 }),
      fc.boolean(),
      async (all, by, isObject) => {
        const text = all.join('').repeat(100)
        const value = isObject ? { text } : text
        const whole = isObject ? JSON.stringify(value) : text
        const size = Buffer.byteLength(whole)
        const maxToolResultBytes = size + by
        const { result, files } = await runTool(() => value, { maxToolResultBytes })
        if (size <= maxToolResultBytes) {
          expect(result).toEqual(value)
          return void expect(files).toEqual({})
        }
        expect(files).toEqual({ '/results/call_1.txt': whole })
        const { head, tail, left, path } = note.exec(result as string)!.groups!
        expect(path).toBe('/results/call_1.txt')
        expect(whole.startsWith(head!) && whole.endsWith(tail!)).toBe(true)
        expect(Buffer.byteLength(head! + tail!) + Number(left)).toBe(size)
        expect(Buffer.byteLength(head! + tail!)).toBeLessThanOrEqual(maxToolResultBytes)
      },
    ),
    { numRuns: 30 },
  )
})

test('the default is 256 KiB', async () => {
  const { result, files } = await runTool(() => 'x'.repeat(300 * 1024), {})
  expect(files['/results/call_1.txt']).toHaveLength(300 * 1024)
  expect((result as string).length).toBeLessThan(256 * 1024)
})

test('the text of an error is cut in the same way', async () => {
  const execute = (): never => {
    throw new Error(`Failed: ${'x'.repeat(5000)}!`)
  }
  const { result, isError, files } = await runTool(execute, { maxToolResultBytes: 1000 })
  expect(isError).toBe(true)
  expect(result).toMatch(/^Failed: x+\n\n\[\d+ bytes are left out.*x!$/s)
  expect(files['/results/call_1.txt']).toContain('Failed: ')
})

test('an id that is no file name, and a result over the limit of files', async () => {
  const limits = { maxToolResultBytes: 1000, maxFileBytes: 2000 }
  const { result, files } = await runTool(() => 'é'.repeat(2000), limits, '../../etc/passwd\n')
  expect(Object.keys(files)).toEqual(['/results/______etc_passwd_.txt'])
  expect(files['/results/______etc_passwd_.txt']).toBe('é'.repeat(1000))
  expect(result).toContain('The first 2000 bytes are in the file')
})

test('media are not cut: they become a file, which the model is shown whole', async () => {
  const data = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(3000)])
  const source = { type: 'base64', data: data.toString('base64') }
  const image = { type: 'image', source, mimeType: 'image/png' }
  const { result, files } = await runTool(() => image, { maxToolResultBytes: 1000 })
  expect(Object.keys(files)).toEqual(['/results/call_1.png'])
  const [named, shown] = result as [{ text: string }, { source: { data: Uint8Array } }]
  expect(named.text).toBe('/results/call_1.png (image/png, 3008 bytes)')
  expect(Buffer.from(shown.source.data).equals(data)).toBe(true)
})

test('an answer over maxMessageBytes fails the session once, with the limit in its reason', async () => {
  const model = scripted(() => says('x'.repeat(2000)))
  const prompt = definePrompt({ name: 'main', prompt: 'Talk.', model })
  const agent = defineAgent({ name: 'talker', sideA: { prompt } })
  const runtime = await createRuntime({ agents: [agent], limits: { maxMessageBytes: 1000 } })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'talker' })
  const ended = await runtime.threads.run(id, 'Go')
  expect(ended).toMatchObject({ outcome: 'failed', reason: 'model_error' })
  expect(ended.text).toContain('is over 1000 bytes')
  expect(model.requests).toHaveLength(1)
  await runtime.stop()
})
