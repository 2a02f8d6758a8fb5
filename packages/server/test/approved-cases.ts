import { PassThrough } from 'node:stream'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import fc from 'fast-check'
import * as v from 'valibot'
import { expect } from 'vitest'
import { z } from 'zod'
import type { ToolSchema } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import type { JsonObject, JsonValue } from '@skein/base'
import { approveCommand, inbox as inboxCommand } from '../../cli/src/commands/inbox.ts'
import type { Output } from '../../cli/src/terminal/output.ts'
import { defineAgent, definePrompt, defineTool, createRuntime, memoryStore } from '@skein/runtime'
import { createClient } from '../src/client/create-client.ts'
import { serve } from '../src/http/serve.ts'
import { threadView } from '@skein/runtime/view'
import { arkFields, valibotFields, zodFields } from '../../runtime/test/schema-fields.ts'

/** A schema, what a model sends to it, and whether that fits. */
interface Case {
  readonly schema: ToolSchema<Record<string, unknown>>
  readonly sent: JsonObject
}

/** Builds cases from numbers: a seed gives the same schemas and the same input each time. */
function caseFrom(library: number, picks: readonly (readonly [number, number])[]): Case {
  const sent: Record<string, JsonValue> = {}
  const fieldsOf = <Schema>(
    fields: readonly (readonly [Schema, readonly (JsonValue | undefined)[]])[],
  ) =>
    Object.fromEntries(
      picks.map(([field, value], at) => {
        const [schema, values] = fields[field % fields.length]!
        const given = values[value % values.length]
        if (given !== undefined) sent[`f${at}`] = given
        return [`f${at}`, schema]
      }),
    )
  if (library < 8) {
    const schema = z.object(fieldsOf(zodFields.map((make) => make())))
    return { schema: schema as unknown as Case['schema'], sent }
  }
  if (library === 8) {
    const schema = v.object(fieldsOf(valibotFields.map((make) => make())) as never)
    return { schema: toStandardJsonSchema(schema as never) as never, sent }
  }
  return { schema: type(fieldsOf(arkFields) as never) as never, sent }
}

const cases: fc.Arbitrary<Case> = fc
  .tuple(
    fc.nat({ max: 9 }),
    fc.array(fc.tuple(fc.nat({ max: 100 }), fc.nat({ max: 100 })), { minLength: 1, maxLength: 4 }),
  )
  .map(([library, picks]) => caseFrom(library, picks))

/** What one place shows of a call that waits: what will run, and what the model sent. */
interface Shown {
  readonly runs: unknown
  readonly sent: unknown
}

/**
 * Runs calls of random tools on a server. Compares what the API, the screen and the terminal show the approver with the
 * ledger of what ran.
 */
export async function checkApproved(
  numRuns: number,
  seed: number,
): Promise<{ readonly ran: number }> {
  const given = fc.sample(cases, { numRuns, seed })
  const ledger = new Map<string, unknown[]>()
  const tools = given.map(({ schema }, at) =>
    defineTool({
      name: `tool_${at}`,
      description: 'Acts.',
      risk: 'write_high_risk',
      rollback: 'impossible',
      args: schema,
      execute: (_state, args) => {
        const name = `tool_${at}`
        ledger.set(name, [...(ledger.get(name) ?? []), structuredClone(args)])
      },
    }),
  )
  const script = given.flatMap(({ sent }, at) => [calls(`tool_${at}`, sent), says('Done.')])
  const model = scripted(script)
  const prompt = definePrompt({ name: 'p', model, tools, prompt: '' })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'support', sideA: { prompt } })],
    store: memoryStore(),
    secretKey: new Uint8Array(32),
  })
  await runtime.start()
  const limits = { requestsPerMinute: 1e6, requestsPerMinutePerAddress: 1e6 }
  const serving = await serve(runtime, { port: 0, auth: 'none', limits })
  const client = createClient({ url: serving.url })
  let ran = 0
  try {
    for (const [at, { sent }] of given.entries()) {
      const name = `tool_${at}`
      const { id } = await client.threads.create({ agent: 'support' })
      const { outcome } = await client.threads.run(id, 'go')
      const [item] = await client.inbox.list()
      if (!item) {
        // The arguments do not fit: the model was told, and nothing ran.
        expect(outcome).toBe('completed')
        expect(ledger.get(name)).toBeUndefined()
        continue
      }
      const places = {
        'inbox of the API': shownBy(item),
        'call of the API': shownBy(await client.inbox.get(item)),
        'screen of the thread': shownBy(await callOnScreen(client, id)),
        'inbox of the terminal': await shownInTerminal(inboxCommand, serving.url, []),
        'skein approve': await shownInTerminal(approveCommand, serving.url, [id], name),
      }
      expect((await client.threads.settled(id)).outcome).toBe('completed')
      const [args, ...more] = ledger.get(name) ?? []
      expect(more).toEqual([])
      for (const [place, { runs, sent: raw }] of Object.entries(places)) {
        expect(runs, place).toEqual(args)
        expect(raw ?? runs, place).toEqual(sent)
      }
      expect(item.request?.action.args).toEqual(args)
      const log = (await runtime.threads.events(id)).map(({ event }) => event)
      expect(log.find((event) => event.type === 'tool_execution_start')?.arguments).toEqual(args)
      ran++
    }
  } finally {
    await serving.close()
    await runtime.stop()
  }
  return { ran }
}

function shownBy({
  arguments: runs,
  sentArguments: sent,
}: {
  readonly arguments?: unknown
  readonly sentArguments?: unknown
}): Shown {
  return { runs, sent }
}

/** The call as Studio has it on the screen of its thread. */
async function callOnScreen(
  client: ReturnType<typeof createClient>,
  id: string,
): Promise<Parameters<typeof shownBy>[0]> {
  const fold = threadView(await client.threads.events(id, { limit: 1000 }))
  return fold.items.find((one) => one.type === 'call')!
}

/** Runs a command as a person at a terminal, who types a word when asked. Returns what was shown before that. */
async function shownInTerminal(
  command: Pick<typeof inboxCommand, 'run'>,
  url: string,
  operands: readonly string[],
  word?: string,
): Promise<Shown> {
  const lines: string[] = []
  let asked: number | undefined
  const write = (text: string): void => void lines.push(text)
  const output = {
    line: write,
    say: write,
    prompt() {
      asked = lines.length
      return ''
    },
  } as Partial<Output> as Output // the commands use no more of it
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const own = Object.getOwnPropertyDescriptor(process, 'stdin')!
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
  try {
    if (word !== undefined) stdin.write(`${word}\n`)
    expect(await command.run({ values: { url }, operands, output })).toBe(0)
  } finally {
    Object.defineProperty(process, 'stdin', own)
  }
  expect(asked === undefined).toBe(word === undefined)
  const seen = lines.slice(0, asked).join('\n')
  return {
    runs: argumentsIn(seen, /asks: tool_\d+ (.*) \(/),
    sent: argumentsIn(seen, /the model sent: tool_\d+ (.*)$/m),
  }
}

/** Reads the arguments of a call from a line for people. */
function argumentsIn(text: string, pattern: RegExp): unknown {
  const found = pattern.exec(text)?.[1]
  if (found === undefined) return undefined
  if (found.startsWith('{')) return JSON.parse(found)
  // A long call: the names first, then each value with its name.
  const [, values = ''] = /^\([\w, ]*\) (\{.*\})$/.exec(found)!
  return JSON.parse(values.replaceAll(/(?<=^\{|, )(f\d): /g, '"$1": '))
}
