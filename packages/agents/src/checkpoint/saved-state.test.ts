import {
  AssistantMessage,
  defer,
  messageToJSON,
  ToolResultMessage,
  UserMessage,
  zeroUsage,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { agent } from '../index.ts'
import { newAccount } from '../state/run-account.ts'
import { AgentState } from '../state/state.ts'
import type { CallRecord } from '../contract/checkpoint-store.ts'
import { foldJournal, memoryCheckpoints } from './index.ts'

const asked = ['a', 'b'].map((toolCallId) => ({ toolCallId, toolName: 'kid', arguments: {} }))
const open = AgentState.initial()
  .withMessages([new UserMessage('x'), new AssistantMessage('', asked)])
  .withRun(newAccount('s'))

function trace(parentToolCallId: string) {
  const usage = { ...zeroUsage, totalTokens: 5 }
  const name = { subagentId: `${parentToolCallId}-run`, subagentType: 'kid', prompt: '' }
  return { ...name, parentToolCallId, startTime: 0, endTime: 1, success: true, usage }
}

function entry(toolCallId: string, result: string, isTraced = false): CallRecord {
  const message = messageToJSON(new ToolResultMessage([{ toolCallId, result }]))
  return isTraced ? { toolCallId, message, traces: [trace(toolCallId)] } : { toolCallId, message }
}

test('the results of open calls are added, with the traces and tokens of their sub-agents', () => {
  const json = open.toJSON()
  const entries = [
    entry('a', 'first', true),
    entry('z', 'of an older message', true),
    entry('a', 'last', true),
  ]
  const folded = foldJournal(json, entries)
  expect(folded.id).toBe(json.id)
  expect(folded.suspension).toMatchObject({
    answered: { results: [{ toolCallId: 'a', result: 'last' }] },
    deferred: [],
  })
  expect(folded.subagentTraces).toEqual([trace('a')])
  expect(folded.run!.subagentUsage.totalTokens).toBe(5)
})

test('a call that the state already knows is not counted again', () => {
  const answered = new ToolResultMessage([{ toolCallId: 'a', result: 1 }])
  const json = open.withSuspension({ answered, deferred: [] }).toJSON()
  const folded = foldJournal(json, [entry('a', 'again', true), entry('b', 'new', true)])
  expect(folded.subagentTraces).toEqual([trace('b')])
  expect(folded.run!.subagentUsage.totalTokens).toBe(5)
})

test('a call that waited and has a result now waits no longer', () => {
  const request = { kind: 'input', request: 'well?' } as const
  const deferred = ['a', 'b'].map((toolCallId) => ({ toolCallId, request }))
  const json = open.withSuspension({ deferred }).toJSON()
  const folded = AgentState.fromJSON(foldJournal(json, [entry('a', 'known')]))
  expect(folded.interrupts.map(({ toolCallId }) => toolCallId)).toEqual(['b'])
  expect(folded.suspension?.answered?.results).toMatchObject([{ toolCallId: 'a' }])
})

test('a journal without results of open calls changes nothing', () => {
  const json = open.toJSON()
  expect(foldJournal(json, [entry('z', 'other', true)])).toBe(json)
})

test('the journal of a run has its finished calls, and not those that wait for an answer', async () => {
  const recorded: string[] = []
  const store = memoryCheckpoints({ journal: true })
  const parameters = { type: 'object' }
  const worker = agent({
    model: scripted([[calls('pay', {}, { id: 'p' }), calls('ask', {}, { id: 'a' })], says('done')]),
    tools: [
      { name: 'pay', description: 'd', parameters, run: () => 'paid' },
      {
        name: 'ask',
        description: 'd',
        parameters,
        run: () => defer({ kind: 'input', request: 'well?' }),
      },
    ],
    checkpoints: {
      ...store,
      record: async (sessionId, entry) => {
        recorded.push(entry.toolCallId)
        await store.record?.(sessionId, entry)
      },
    },
    sessionId: 's',
  })
  const { interrupts } = await worker.generate('go', AgentState.initial())
  expect(interrupts?.map(({ toolCallId }) => toolCallId)).toEqual(['a'])
  expect(recorded).toEqual(['p'])
})
