import type { JsonValue } from '@skein/base'
import type { AdmittedCall, ApprovalRequest } from '@skein/governance'
import type { ToolDefinition } from '../../src/definitions/tool-definition.ts'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { answerInDoubt, type InDoubt, settleUnknownEffect } from '../../src/governance/in-doubt.ts'
import type { GovernanceWrites, SessionGovernor } from '../../src/governance/session-governor.ts'
import type { SessionGovernorsOptions } from '../../src/governance/session-governors.ts'
import { claimed } from '../../src/testing/contract.ts'
import type { Kit } from './governed-kit.ts'
import type { Mortal } from './mortal.ts'

/** A session as a kernel sees it, and no more: calls to be made in order, then an end. */
export interface Play {
  readonly made: Kit
  readonly mortal: Mortal
  readonly calls: readonly { readonly id: string; readonly tool: ToolDefinition }[]
  readonly end: 'deliver' | 'fail'
  readonly run: (call: AdmittedCall) => Promise<JsonValue>
  readonly undo?: SessionGovernorsOptions['undo']
}

/** What waits, as the log has it. */
export type Waiting =
  | { readonly type: 'approval'; readonly call: string; readonly request: ApprovalRequest }
  | { readonly type: 'in_doubt'; readonly call: string }

/**
 * One drain of the smallest kernel: admit, commit, run, settle, commit. Its state is the fold of its
 * events; values stand for the events a real one has.
 */
export async function playKernel(play: Play): Promise<'ended' | Waiting> {
  const kernel = new PlayKernel(play)
  await kernel.open()
  for (const call of play.calls) {
    const waiting = await kernel.make(call)
    if (waiting) return waiting
  }
  await kernel.end()
  return 'ended'
}

class PlayKernel {
  readonly #play: Play
  #governor!: SessionGovernor
  #epoch = 0
  #state = new Map<string, JsonValue>()

  constructor(play: Play) {
    this.#play = play
  }

  async open(): Promise<void> {
    const { made, undo, mortal } = this.#play
    await mortal.step('claim')
    this.#epoch = (await claimed(made.store, 'thread-1')).epoch
    for (const event of await made.events()) {
      if (event.type === 'value_set') this.#state.set(event.key, event.value)
    }
    const governors = made.restart({ ...(undo && { undo }) })
    const commit = (writes: GovernanceWrites): Promise<void> => this.#write('undo', writes)
    this.#governor = await governors.open({ ...made.session, commit })
  }

  async make({ id, tool }: Play['calls'][number]): Promise<Waiting | undefined> {
    const status = this.#state.get(id)
    if (status === 'settled') return undefined
    if (status === 'started' || status === 'asked') {
      const found = await this.#settleInDoubt(id, tool, status)
      if (found.type === 'ask') {
        await this.#commit('ask', id, 'asked')
        return { type: 'in_doubt', call: id }
      }
      if (found.type !== 'rerun') {
        await this.#commit('told', id, 'settled')
        return undefined
      }
    }
    return this.#admit(id, tool)
  }

  async #settleInDoubt(id: string, tool: ToolDefinition, status: string): Promise<InDoubt> {
    const governor = this.#governor
    if (status === 'asked') {
      return answerInDoubt({ tool, callId: id, governor, answer: this.#state.get(`answer/${id}`) })
    }
    const context = { signal: new AbortController().signal, idempotencyKey: id }
    return settleUnknownEffect({ tool, callId: id, args: {}, governor, context })
  }

  async #admit(id: string, tool: ToolDefinition): Promise<Waiting | undefined> {
    const { run, mortal } = this.#play
    const token = this.#state.get(`token/${id}`)
    const answer =
      typeof token === 'string' ? { type: 'approve' as const, tokens: [token] } : undefined
    const call = { id, tool: tool.name, args: {}, turnId: 'turn-1' }
    const admission = await this.#governor.admit(call, answer)
    switch (admission.type) {
      case 'review':
        await this.#commit('review', id, 'waiting')
        return { type: 'approval', call: id, request: admission.request }
      case 'deny':
      case 'replay':
        await this.#commit(admission.type, id, 'settled')
        return undefined
      case 'allow':
        await this.#commit('intent', id, 'started')
        await mortal.step('before run')
        {
          const value = await run(admission.call)
          await mortal.step('after run')
          await this.#governor.settle(id, { type: 'result', value }, 'turn-1')
        }
        await this.#commit('settled', id, 'settled')
        return undefined
    }
  }

  async end(): Promise<void> {
    if (this.#state.get('session') === 'ended') return
    if (this.#play.end === 'deliver') await this.#governor.deliver('done')
    else await this.#governor.fail('max_session_turns', 'too many')
    await this.#commit('end', 'session', 'ended')
  }

  async #commit(point: string, key: string, value: JsonValue): Promise<void> {
    this.#state.set(key, value)
    await this.#write(point, this.#governor.takeWrites(), [setValue(key, value)])
  }

  async #write(
    point: string,
    { events, ...writes }: GovernanceWrites,
    append: readonly RuntimeEvent[] = [],
  ): Promise<void> {
    const { made, mortal } = this.#play
    await mortal.step(`before ${point}`)
    const threads = [{ id: 'thread-1', fence: this.#epoch, append: [...append, ...events] }]
    await made.store.commit({ point, threads, ...writes })
    await mortal.step(`after ${point}`)
  }
}

/** What reaches a thread from outside. */
export async function tell(made: Kit, key: string, value: JsonValue): Promise<void> {
  const threads = [{ id: 'thread-1', append: [setValue(key, value)] }]
  await made.store.commit({ point: 'tell', threads })
}

function setValue(key: string, value: JsonValue): RuntimeEvent {
  return { type: 'value_set', key, value, at: '2026-03-01T12:00:00.000Z' }
}
