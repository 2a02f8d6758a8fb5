import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Answer, tools } from './by-hand.ts'
import { instructions, type Client, type ClientOptions } from './client.ts'

interface Thread {
  readonly messages: object[]
  seq: number
  epoch: number
  lines: number
}

/**
 * By hand, with the facts that our log has: what a floor for a durable turn costs. It writes the same events, audit
 * lines and contents in the same commits, four of them synced and two not, in the plainest way: no checks, no
 * fences, no recovery, no packing, no notifications.
 */
export async function byHandFactsClient(options: ClientOptions): Promise<Client> {
  const { baseUrl, folder, lookUp } = options
  const database = new DatabaseSync(join(folder, 'threads.db'))
  database.exec(`
    PRAGMA page_size = 2048;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE threads (id TEXT PRIMARY KEY, status TEXT, seq INTEGER, epoch INTEGER, updated_at INTEGER) WITHOUT ROWID;
    CREATE TABLE events (thread TEXT, seq INTEGER, json TEXT, PRIMARY KEY (thread, seq)) WITHOUT ROWID;
    CREATE TABLE audit (thread TEXT, idx INTEGER, line TEXT, PRIMARY KEY (thread, idx)) WITHOUT ROWID;
    CREATE TABLE contents (hash TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
  `)
  const setHead = database.prepare('REPLACE INTO threads VALUES (?, ?, ?, ?, ?)')
  const addEvent = database.prepare('INSERT INTO events VALUES (?, ?, ?)')
  const addLine = database.prepare('INSERT INTO audit VALUES (?, ?, ?)')
  const addContent = database.prepare('INSERT OR IGNORE INTO contents VALUES (?, ?)')
  const threads = new Map<string, Thread>()

  return {
    async turn(id, text) {
      const thread = threads.get(id) ?? { messages: [], seq: 0, epoch: 0, lines: 0 }
      threads.set(id, thread)
      const [sessionId, turnId] = [randomUUID(), randomUUID()]
      let stepId = randomUUID()
      const event = (type: string, more: object = {}): object => ({
        type,
        at: new Date().toISOString(),
        turnId,
        ...more,
      })
      const identity = { agent_id: 'helper', owner_id: 'default', thread: id }
      const line = (name: string, data: object): object => ({
        identity,
        request_id: sessionId,
        timestamp: new Date().toISOString(),
        event: name,
        data,
      })
      const contents: string[] = []
      const hashed = (value: unknown): string => {
        const json = JSON.stringify(value)
        contents.push(json)
        return createHash('sha256').update(json).digest('hex')
      }
      const commit = (
        status: string,
        { events = [], lines = [] }: { events?: object[]; lines?: object[] },
        isLazy = false,
      ): void => {
        if (isLazy) database.exec('PRAGMA synchronous = NORMAL')
        database.exec('BEGIN IMMEDIATE')
        for (const one of events) addEvent.run(id, ++thread.seq, JSON.stringify(one))
        for (const one of lines) addLine.run(id, thread.lines++, JSON.stringify(one))
        for (const one of contents.splice(0))
          addContent.run(createHash('sha256').update(one).digest('hex'), one)
        setHead.run(id, status, thread.seq, thread.epoch, Date.now())
        database.exec('COMMIT')
        if (isLazy) database.exec('PRAGMA synchronous = FULL')
      }
      const ask = async (): Promise<Answer['choices'][0]['message']> => {
        const messages = [{ role: 'system', content: instructions }, ...thread.messages]
        const response = await fetch(`${baseUrl}/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
          body: JSON.stringify({ model: 'turn', messages, tools }),
        })
        return ((await response.json()) as Answer).choices[0].message
      }
      const answered = (said: object): object[] => {
        const logId = randomUUID()
        thread.messages.push(said)
        const frame = hashed({ instructions, tools })
        return [
          event('model_requested', { logId, stepId, frame, keeps: thread.messages.length }),
          event('model_answered', { logId, usage: { input_tokens: 10, output_tokens: 10 } }),
          event('message_added', { stepId, message: said }),
        ]
      }

      const asked = { role: 'user', content: text }
      commit('queued', { events: [event('message_queued', { message: asked })] })
      thread.epoch++
      commit('queued', {}, true)
      thread.messages.push(asked)
      const begins = [
        event('session_start', { sessionId }),
        event('status_changed', { status: 'running' }),
        event('message_added', { message: asked }),
        event('turn_start', { agent: 'helper' }),
        event('step_start', { stepId, epoch: thread.epoch }),
      ]
      commit('running', { events: begins }, true)
      for (;;) {
        const said = await ask()
        if (!said.tool_calls) {
          const ends = [
            ...answered(said),
            event('step_end', { stepId }),
            event('turn_end', { reason: 'response' }),
            event('session_end', { sessionId, message: said.content }),
            event('gate_decided', { gate: 'pre_deliver', decision: 'delivered' }),
            event('status_changed', { status: 'idle' }),
          ]
          const hash = hashed(said.content)
          const lines = [line('transition', { from: 'execute' }), line('delivered', { hash })]
          commit('idle', { events: ends, lines })
          return said.content
        }
        for (const call of said.tool_calls) {
          const args = JSON.parse(call.function.arguments) as { id: number }
          const starts = [
            ...answered(said),
            event('tool_execution_start', { toolCallId: call.id, args }),
            event('gate_decided', { gate: 'pre_action', decision: 'allow', toolCallId: call.id }),
          ]
          const opened = [
            line('opened', { input: hashed(text) }),
            line('transition', { from: 'intake' }),
            line('transition', { from: 'plan' }),
          ]
          commit('running', { events: starts, lines: opened })
          const result = lookUp(args.id)
          thread.messages.push({
            role: 'tool',
            tool_call_id: call.id,
            content: JSON.stringify(result),
          })
          const hash = hashed(result)
          const ended = [
            event('tool_execution_end', { toolCallId: call.id, result }),
            event('evidence_added', { hash, toolCallId: call.id }),
            event('step_end', { stepId }),
          ]
          stepId = randomUUID()
          ended.push(event('step_start', { stepId, epoch: thread.epoch }))
          const settled = line('call_settled', { args: hashed(args), hash })
          commit('running', { events: ended, lines: [settled] })
        }
      }
    },
  }
}
