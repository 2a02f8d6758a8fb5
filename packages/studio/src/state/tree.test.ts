import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type NumberedEvent,
} from '@skein/runtime'
import { LogFold, type LoggedEvent } from './tree.ts'

/** The log of a thread, and everything that a reader of it is sent, deltas included. */
async function record(): Promise<{ log: readonly LoggedEvent[]; sent: readonly NumberedEvent[] }> {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    risk: 'read_only',
    args: z.object({ at: z.number() }),
    execute: (_, { at }) => `thing ${at}`,
  })
  const agent = defineAgent({
    name: 'desk',
    sideA: {
      prompt: definePrompt({
        name: 'desk',
        prompt: 'Help.',
        model: scripted(({ messages }) =>
          messages.at(-1)?.type === 'user'
            ? [says('Let me look at it. '), calls('look', { at: 1 }), calls('look', { at: 2 })]
            : says('I have looked at all of it.'),
        ),
        tools: [look],
      }),
    },
  })
  const runtime = await createRuntime({ agents: [agent] })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  const sent: NumberedEvent[] = []
  const abort = new AbortController()
  const reading = (async () => {
    for await (const numbered of runtime.subscribe(id, { signal: abort.signal }))
      sent.push(numbered)
  })()
  for (const text of ['first', 'second', 'third']) await runtime.threads.run(id, text)
  const log = await runtime.threads.events(id)
  await expect.poll(() => Math.trunc(Number(sent.at(-1)?.id))).toBe(log.at(-1)!.seq)
  abort.abort()
  await reading
  await runtime.stop({ graceMs: 0 })
  return { log, sent }
}

function isDelta({ event }: NumberedEvent): boolean {
  return event.type.endsWith('_delta')
}

test('the end of a log, then what came before, while events arrive: the same as the whole log in order', async () => {
  const { log, sent } = await record()
  expect(sent.some(isDelta)).toBe(true)
  const whole = new LogFold('t')
  whole.begin(log)
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: log.length - 1 }),
      fc.nat(),
      fc.integer({ min: 1, max: 20 }),
      fc.nat({ max: 5 }),
      async (known, tail, pageSize, repeated) => {
        // A page is opened when `known` events are stored, reads some of them, and the others arrive.
        const start = known - (tail % known) - 1
        const fold = new LogFold('t')
        fold.begin(log.slice(start, known))
        const from = sent.findIndex(({ id }) => Math.trunc(Number(id)) > known)
        // After a break, some of what was sent comes again.
        const arriving = sent.slice(Math.max(0, from - repeated))
        const middle = Math.ceil(arriving.length / 2)
        for (const { id, event } of arriving.slice(0, middle)) fold.push(id, event)
        await fold.prepend(pages(log.slice(0, start), pageSize))
        for (const { id, event } of arriving.slice(middle)) fold.push(id, event)
        expect(fold.earlier).toBe(0)
        expect(fold.state.view).toEqual(whole.state.view)
        expect(fold.state.facts).toEqual(whole.state.facts)
        expect(fold.state.events).toEqual(whole.state.events)
      },
    ),
  )
})

async function* pages(
  log: readonly LoggedEvent[],
  size: number,
): AsyncGenerator<readonly LoggedEvent[]> {
  for (let at = 0; at < log.length; at += size) yield log.slice(at, at + size)
}

test('what is streamed now stays when the earlier events come', async () => {
  const { log, sent } = await record()
  const last = sent.findLastIndex(isDelta)
  const known = Math.trunc(Number(sent[last]!.id))
  const fold = new LogFold('t')
  fold.begin(log.slice(known - 3, known))
  for (const { id, event } of sent.slice(0, last + 1)) fold.push(id, event)
  const words = fold.state.facts.draft?.text
  expect(words).toBe('I have looked at all of it.')
  await fold.prepend(pages(log.slice(0, known - 3), 10))
  expect(fold.state.facts.draft?.text).toBe(words)
  expect(fold.state.view.draft).toBe(words)
})
