import {
  AssistantMessage,
  messageToJSON,
  ToolResultMessage,
  UserMessage,
  zeroUsage,
} from '@skein/ai'
import { expect, test } from 'vitest'
import { newAccount } from '../state/run-account.ts'
import { AgentState } from '../state/state.ts'
import type { CallRecord } from '../contract/checkpoint-store.ts'
import { foldJournal } from './index.ts'

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

test('a journal without results of open calls changes nothing', () => {
  const json = open.toJSON()
  expect(foldJournal(json, [entry('z', 'other', true)])).toBe(json)
})
