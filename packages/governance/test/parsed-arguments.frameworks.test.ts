/** What is approved is what runs, through every framework and with every schema library. */
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { tool as langChainTool } from '@langchain/core/tools'
import { AIMessage, HumanMessage } from '@langchain/core/messages'
import {
  Command,
  END,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { ToolNode } from '@langchain/langgraph/prebuilt'
import { tool } from '@skein/ai'
import { generateText, type ModelMessage, stepCountIs, tool as aiSdkTool } from 'ai'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { governAiSdk, governLangChain } from '../src/govern/index.ts'
import { defineTaskClass, governed, type Run } from '../src/index.ts'
import { identity, openBank } from './bank.ts'
import { aiSdkModel, type Framework, frameworks, langGraphModel } from './frameworks.ts'

let transforms = 0
const count = (n: number): number => {
  transforms++
  return n * 100
}
const made = { cents: 500, all: true }
const schemas = {
  Zod: z.object({ cents: z.number().transform(count), all: z.boolean().default(true) }),
  'Zod, asynchronous': z.object({
    cents: z.number().transform(async (n) => count(n)),
    all: z.boolean().default(true),
  }),
  Valibot: toStandardJsonSchema(
    v.object({
      cents: v.pipe(v.number(), v.transform(count), v.number()),
      all: v.optional(v.boolean(), true),
    }),
  ),
  ArkType: type({ cents: ['number', '=>', count], all: 'boolean = true' }),
}
const ours: readonly Framework[] = frameworks.filter(({ tools }) => tools === undefined)

describe.each(ours)('$name', ({ ask, name }) => {
  describe.each(Object.entries(schemas))('%s', (library, parameters) => {
    // Zod tries a synchronous parse first and calls an asynchronous transform there too.
    const perParse = library === 'Zod, asynchronous' ? 2 : 1

    async function pay(governance: object = {}) {
      const ran: unknown[] = []
      const seen: unknown[] = []
      const see = (args: unknown) => void seen.push(args)
      const paying = governed(
        tool({
          name: 'pay',
          description: 'Pays.',
          parameters: parameters as typeof schemas.Zod,
          run: (args) => {
            ran.push(args)
            return 'paid'
          },
        }),
        {
          risk: 'write_high_risk',
          raise: (args) => (see(args), 'write_high_risk'),
          rollback: (args) => (see(args), { type: 'tool_call', target: 'pay', payload: args }),
          evidence: (_result, args) => (see(args), { type: 'tool_result', payload: args }),
          ...governance,
        },
      )
      const bank = await openBank()
      const task = defineTaskClass({ name: 'pay', tools: [paying], needs: [], verifiers: [] })
      return { bank, task, ran, seen }
    }

    test('the request shows what will run and what the model sent, and that runs once', async () => {
      transforms = 0
      const { bank, task, ran, seen } = await pay()
      const script = [{ id: 'c', tool: 'pay', args: { cents: 5 } }]
      const body = (run: Run) => ask(run, task.tools, script)
      const asked = await bank.governor.run(task, { identity, input: null }, body)
      if (asked.outcome !== 'pending') throw new Error(`It is ${asked.outcome}.`)
      const [request] = asked.waiting
      expect(request).toMatchObject({ action: { args: made }, sent: { cents: 5 } })
      expect(ran).toEqual([])
      const tokens = [await bank.sign(request!)]
      const ended = await bank.governor.resume(asked.request_id, task, body, { tokens })
      expect(ended.outcome).toBe('success')
      expect(ran).toEqual([made])
      expect(transforms).toBe(perParse)
      for (const one of seen) expect(one).toEqual(made)
      // The body runs again, e.g. after a crash: the call is found, and nothing is parsed or run again.
      await bank.governor.resume(asked.request_id, task, body).catch(() => undefined)
      expect(ran).toEqual([made])
      expect(transforms).toBe(perParse)
    })

    test('a call that does not fit is refused, and nobody is asked', async () => {
      const { bank, task, ran } = await pay()
      const script = [{ id: 'c', tool: 'pay', args: { cents: 'many', all: 'yes' } }]
      const body = (run: Run) => ask(run, task.tools, script)
      const { outcome } = await bank.governor.run(task, { identity, input: null }, body)
      expect(outcome).not.toBe('pending')
      expect(ran).toEqual([])
      // LangChain refuses it by the JSON Schema, before the governed tool is called.
      if (name !== 'LangGraph') expect(bank.log.lines.join('\n')).toContain('SCHEMA_INVALID')
    })
  })
})

describe('tools of a framework, which parses before it calls them', () => {
  const parameters = z.object({
    cents: z.number().transform((n) => n * 100),
    all: z.boolean().default(true),
  })
  const options = { identity: () => identity, onDefault: () => undefined }

  test('governAiSdk judges and runs what the schema makes', async () => {
    const ran: unknown[] = []
    const asked: unknown[] = []
    const tools = governAiSdk({
      ...options,
      policy: {
        id: 'watch',
        hash: `sha256:${'0'.repeat(64)}`,
        decide: ({ args }) => (asked.push(args), { effect: 'allow' }),
      },
      tools: {
        pay: {
          tool: aiSdkTool({
            description: 'Pays.',
            inputSchema: parameters,
            execute: (args) => (ran.push(args), 'paid'),
          }),
          risk: 'write_low_risk',
        },
      },
    })
    const model = aiSdkModel([{ id: 'c', tool: 'pay', args: { cents: 5 } }])
    const messages: ModelMessage[] = [{ role: 'user', content: 'Go.' }]
    await generateText({ model, messages, tools, stopWhen: stepCountIs(3) })
    expect(ran).toEqual([made])
    for (const one of asked) expect(one).toEqual(made)
    expect(asked.length).toBeGreaterThan(0)
  })

  test('governLangChain asks about and runs what the schema makes', async () => {
    const ran: unknown[] = []
    const pay = langChainTool(
      (args: unknown) => {
        ran.push(args)
        return 'paid'
      },
      { name: 'pay', description: 'Pays.', schema: parameters },
    )
    const tools = governLangChain({
      ...options,
      interrupt: interrupt as never,
      tools: [{ tool: pay, risk: 'write_high_risk', rollback: 'impossible' }],
    })
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('model', langGraphModel([{ id: 'c', tool: 'pay', args: { cents: 5 } }]))
      .addNode('tools', new ToolNode(tools as never))
      .addEdge(START, 'model')
      .addConditionalEdges('model', ({ messages }) =>
        (messages.at(-1) as AIMessage).tool_calls?.length ? 'tools' : END,
      )
      .addEdge('tools', 'model')
      .compile({ checkpointer: new MemorySaver() })
    const config = { configurable: { thread_id: 't' } }
    const first = (await graph.invoke({ messages: [new HumanMessage('Go.')] }, config)) as {
      __interrupt__?: { value: { id: string; action: { args: unknown } } }[]
    }
    const request = first.__interrupt__?.[0]?.value
    expect(request?.action.args).toEqual(made)
    await graph.invoke(new Command({ resume: [{ id: request!.id, approved: true }] }), config)
    expect(ran).toEqual([made])
  })
})
