/** What middleware puts into a request is checked like what the caller wrote, whichever hook did it. */
import { Image, llm, UserMessage, type LLMRequest, type Middleware, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { png } from './support/stub.ts'

const tool = (name: string): Tool => ({ name, description: '', parameters: {}, run: () => 1 })
const picture = new UserMessage([Image.fromBase64(png).toBlock()])

interface Change {
  readonly lacks?: 'tools' | 'structuredOutput' | 'imageInput'
  readonly change: (request: LLMRequest) => Partial<LLMRequest>
}

const changes: Record<string, Change> = {
  'tools for a model without tools': { lacks: 'tools', change: () => ({ tools: [tool('a')] }) },
  'a structure for a model without structured output': {
    lacks: 'structuredOutput',
    change: () => ({ structure: { type: 'object' } }),
  },
  'an image for a model that sees none': {
    lacks: 'imageInput',
    change: ({ messages }) => ({ messages: [...messages, picture] }),
  },
  'two tools of one name': { change: () => ({ tools: [tool('a'), tool('b'), tool('a')] }) },
}

type Way = (change: Change['change'], isTime: (cycle: number) => boolean) => Partial<Middleware>
const hooks: Record<string, Way> = {
  'in a request that onCycle returns': (change, isTime) => ({
    onCycle: (request, cycle) => (isTime(cycle) ? { ...request, ...change(request) } : undefined),
  }),
  'in the request that onCycle gets': (change, isTime) => ({
    onCycle: async (request, cycle) => {
      if (isTime(cycle)) Object.assign(request, change(request))
    },
  }),
  'by wrapInference': (change, isTime) => {
    let cycle = 0
    return {
      wrapInference: (request, next) =>
        next(isTime(++cycle) ? { ...request, ...change(request) } : request),
    }
  },
  'by wrapInference as a generator': (change, isTime) => {
    let cycle = 0
    return {
      async *wrapInference(request, next) {
        yield* next(isTime(++cycle) ? { ...request, ...change(request) } : request)
      },
    }
  },
}

describe.each(Object.entries(changes))('%s', (_, { lacks, change }) => {
  const cycles = lacks === 'tools' ? [1] : [1, 2]

  test.each(Object.entries(hooks))(
    'UPP-167 UPP-125 UPP-112 %s: refused before it is sent',
    async (__, way) => {
      for (const bad of cycles)
        for (const streaming of [false, true]) {
          const model = scripted([calls('own'), says('{}')], {
            ...(lacks && { capabilities: { [lacks]: false } }),
          })
          const told: unknown[] = []
          const middleware: Middleware[] = [
            { name: 'changes', ...way(change, (cycle) => cycle === bad) },
            { name: 'told', onError: (error) => void told.push(error) },
          ]
          const tools = lacks === 'tools' ? [] : [tool('own')]
          const talker = llm({ model, tools, middleware })
          const answer = streaming ? talker.stream('x').turn : talker.generate('x')
          const error: unknown = await answer.catch((thrown: unknown) => thrown)
          expect(error).toMatchObject({
            code: 'INVALID_REQUEST',
            provider: 'scripted',
            modality: 'llm',
          })
          expect(told).toEqual([error])
          expect(model.requests).toHaveLength(bad - 1)
        }
    },
  )
})

test('UPP-167 UPP-125 what the model can do may be put into a request by every hook', async () => {
  for (const way of Object.values(hooks))
    for (const { change } of Object.values(changes).slice(0, 3)) {
      const model = scripted([says('{}')])
      const middleware = [{ name: 'changes', ...way(change, () => true) }]
      const turn = await llm({ model, middleware }).generate('x')
      expect(turn.response.text).toBe('{}')
      expect(model.requests).toHaveLength(1)
    }
})
