import type { Answer } from '@skein/agents'
import type { WaitingItem } from '../runtime-api.ts'
import { path, type Requester } from './requester.ts'

type Item = Pick<WaitingItem, 'threadId' | 'interruptId'>

/** What waits for a person. Decisions count as those of the person the key belongs to. */
export interface ClientInbox {
  list(query?: {
    readonly rootId?: string
    readonly limit?: number
  }): Promise<readonly WaitingItem[]>
  approve(
    item: Item & { readonly reason?: string; readonly tokens?: readonly string[] },
  ): Promise<void>
  deny(item: Item & { readonly reason: string }): Promise<void>
  answer(item: Item, answer: Extract<Answer, { type: 'result' | 'error' }>): Promise<void>
}

export function inboxOf(requester: Requester): ClientInbox {
  const decide = ({ threadId, interruptId }: Item, json: object): Promise<void> =>
    requester.json('POST', path`/approvals/${threadId}/${interruptId}`, { json })
  return {
    async list(query = {}) {
      const { waiting } = await requester.json<{ waiting: WaitingItem[] }>('GET', '/approvals', {
        query,
      })
      return waiting
    },
    approve: ({ reason, tokens, ...item }) => decide(item, { type: 'approve', reason, tokens }),
    deny: ({ reason, ...item }) => decide(item, { type: 'deny', reason }),
    answer: (item, answer) => decide(item, answer),
  }
}
