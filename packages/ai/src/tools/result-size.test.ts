import { describe, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import { isToolResultMessage, llm, type Tool, type ToolResultMessage } from '../index.ts'

const toolOf = (run: () => unknown): Tool => ({
  name: 'read',
  description: 'Reads.',
  parameters: { type: 'object' },
  run,
})

async function turnOf(run: () => unknown, maxToolResultBytes?: number) {
  const model = scripted([calls('read', {}), says('done')])
  const config = maxToolResultBytes === undefined ? {} : { maxToolResultBytes }
  const turn = await llm({ model, tools: [toolOf(run)], config }).generate('go')
  const shown = model.requests[1]!.messages.filter(isToolResultMessage) as ToolResultMessage[]
  return { turn, shown: shown[0]!.results[0]!.result }
}

describe('a result that is longer than the limit', () => {
  test('UPP-162 is shown as head and tail with what was cut; toolExecutions keep it whole', async () => {
    const whole = `HEAD ${'ä€😀'.repeat(100_000)} TAIL`
    const { turn, shown } = await turnOf(() => whole)
    const text = String(shown)
    expect(new TextEncoder().encode(text).length).toBeLessThanOrEqual(256 * 1024)
    expect(text).toMatch(/^HEAD ä€😀/)
    expect(text).toMatch(/TAIL$/)
    expect(text).toMatch(/\n\n\[\d+ of 900010 bytes of this result are left out here\.\]\n\n/)
    expect(text).not.toContain('\ufffd')
    expect(turn.toolExecutions[0]!.result).toBe(whole)
  })

  test('is cut at the limit of the configuration, also if it is data or an error', async () => {
    const data = { rows: Array.from({ length: 500 }, (_, id) => ({ id })) }
    const { turn, shown } = await turnOf(() => data, 1000)
    expect(String(shown).length).toBeLessThanOrEqual(1000)
    expect(String(shown)).toMatch(/^\{"rows":\[\{"id":0\}/)
    expect(turn.toolExecutions[0]!.result).toEqual(data)
    const failed = await turnOf(() => {
      throw new Error('x'.repeat(5000))
    }, 1000)
    expect(String(failed.shown)).toContain('bytes of this result are left out here')
    expect(failed.turn.toolExecutions[0]!).toMatchObject({
      isError: true,
      result: 'x'.repeat(5000),
    })
  })

  test('stays whole if it has media', async () => {
    const source = { type: 'base64', data: 'A'.repeat(5000) }
    const picture = { type: 'image', source, mimeType: 'image/png' }
    const { shown } = await turnOf(() => [picture], 1000)
    expect(shown).toEqual([picture])
  })
})
