import type { EmbeddedRuntime } from '@skein/runtime'
import { newFolder } from './clients/client.ts'
import { startRuntime } from './clients/skein.ts'
import { startMock } from './start-mock.ts'

/** Tells of each piece of an answer. */
export type OnText = (text: string) => void

/** Asks for one streamed answer, and resolves at its end. */
export type Stream = (onText: OnText) => Promise<void>

interface Chunk {
  readonly choices: readonly { readonly delta?: { readonly content?: string } }[]
}

/** What one writes by hand: `fetch`, a split at blank lines, `JSON.parse`. */
export async function rawStream(model: string): Promise<Stream> {
  const baseUrl = await startMock()
  return async (onText) => {
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
      body: JSON.stringify({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'Hello.' }],
      }),
    })
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of response.body!) {
      const events = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        if (!event.startsWith('data: ') || event === 'data: [DONE]') continue
        const { choices } = JSON.parse(event.slice(6)) as Chunk
        const content = choices[0]?.delta?.content
        if (content) onText(content)
      }
    }
  }
}

/** A durable thread that someone watches: a message is sent, its answer comes through the subscription. */
export async function skeinStream(model: string): Promise<{
  readonly runtime: EmbeddedRuntime
  /** Makes a thread; what is returned sends to it. */
  readonly open: () => Promise<Stream>
}> {
  const baseUrl = await startMock()
  const runtime = await startRuntime({ baseUrl, folder: newFolder(), lookUp: () => ({}) }, model)
  const open = async (): Promise<Stream> => {
    const { id, seq } = await runtime.threads.create({ agent: 'helper' })
    return async (onText) => {
      const events = runtime.subscribe(id, { after: String(seq) })
      const heard = (async () => {
        for await (const { event } of events) {
          if (event.type === 'text_delta') onText(event.text)
          if (event.type === 'session_end') return
        }
      })()
      await runtime.threads.send(id, 'Hello.')
      await heard
    }
  }
  return { runtime, open }
}
