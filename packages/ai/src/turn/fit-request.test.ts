import { describe, expect, test } from 'vitest'
import type { UserContent } from '../contract/content.ts'
import { AssistantMessage, type Message, UserMessage } from '../contract/message.ts'
import { llm } from '../llm.ts'
import { says, scripted } from '../testing/index.ts'
import { deepseek } from '../vendors/deepseek.ts'

const bytes = new Uint8Array([1, 2])
const media: readonly UserContent[] = [
  { type: 'image', source: { type: 'url', url: 'https://a.test/i.png' }, mimeType: 'image/png' },
  { type: 'document', source: { type: 'base64', data: 'JVBERi0=' }, mimeType: 'application/pdf' },
  { type: 'audio', data: bytes, mimeType: 'audio/wav' },
  { type: 'video', data: bytes, mimeType: 'video/mp4' },
]
const blind = () =>
  scripted(() => says('ok'), {
    capabilities: { imageInput: false, documentInput: false, audioInput: false, videoInput: false },
  })
const after = (...blocks: UserContent[]): Message[] => [
  new UserMessage([...blocks, { type: 'text', text: 'What is it?' }]),
  new AssistantMessage('A thing.'),
]

describe('media of a person that a model cannot take', () => {
  test.each(media)('$type: a placeholder in the history, with a warning', async (block) => {
    const model = blind()
    for (const how of ['generate', 'stream'] as const) {
      const instance = llm({ model })
      const turn = await (how === 'generate'
        ? instance.generate(after(block), 'And?')
        : instance.stream(after(block), 'And?').turn)
      const { mimeType } = block as { mimeType: string }
      expect(model.requests.at(-1)!.messages[0]!.text).toBe(`[${block.type}, ${mimeType}: not shown]What is it?`) // prettier-ignore
      expect(turn.warnings).toEqual([
        {
          code: 'unsupported_block',
          message: `scripted cannot take the ${block.type} of an earlier message (${mimeType}); a placeholder was sent.`,
        },
      ])
    }
  })

  test.each(media)('$type: an error in the input', async (block) => {
    const model = blind()
    const instance = llm({ model })
    const inputs = [[block], [after(), block], [after(block), 'so', block, new UserMessage('?')]]
    for (const given of inputs)
      await expect(instance.generate(...(given as [string]))).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining(`${block.type} input`),
      })
    expect(model.requests).toEqual([])
  })

  test('a document that was given as text keeps its text', async () => {
    const model = blind()
    const notes: UserContent = {
      type: 'document',
      source: { type: 'text', data: 'One, two.' },
      mimeType: 'text/plain',
      title: 'Notes',
    }
    await llm({ model }).generate(after(notes), 'And?')
    expect(model.requests[0]!.messages[0]!.text).toBe('Notes\n\nOne, two.What is it?')
  })

  test('the message is written once, and stays the same for the encoders', async () => {
    const model = blind()
    const history = after(media[1]!)
    const turn = await llm({ model }).generate(history, 'And?')
    await llm({ model }).generate([...history, ...turn.messages], 'And now?')
    const [one, two] = model.requests
    expect(two!.messages[0]).toBe(one!.messages[0])
    expect(two!.messages[0]!.id).toBe(history[0]!.id)
  })

  test('a conversation with a PDF continues with a vendor of text', async () => {
    const sent: unknown[] = []
    const fetch = async (_: string, init: RequestInit): Promise<Response> => {
      sent.push(JSON.parse(String(init.body)))
      return Response.json({ choices: [{ index: 0, finish_reason: 'stop', message: { content: 'ok' } }] }) // prettier-ignore
    }
    const model = llm({ model: deepseek('deepseek-chat'), config: { apiKey: 'k', fetch } })
    const turn = await model.generate(after(media[1]!), 'And?')
    expect(turn.response.text).toBe('ok')
    expect(JSON.stringify(sent)).toContain('[document, application/pdf: not shown]')
  })
})
