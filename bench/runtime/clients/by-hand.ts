import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { instructions, parameters, type Client, type ClientOptions } from './client.ts'

interface Call {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface Answer {
  readonly choices: readonly [
    { readonly message: { readonly content: string; readonly tool_calls?: readonly Call[] } },
  ]
}

export const tools: readonly object[] = [
  { type: 'function', function: { name: 'look_up', description: 'Looks up.', parameters } },
]

/** What one writes by hand: `fetch`, a loop, and one durable row per message. */
export async function byHandClient(options: ClientOptions): Promise<Client> {
  const { baseUrl, folder, lookUp } = options
  const database = new DatabaseSync(join(folder, 'threads.db'))
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE messages (thread TEXT NOT NULL, json TEXT NOT NULL);
    CREATE INDEX messages_by_thread ON messages (thread);
  `)
  const insert = database.prepare('INSERT INTO messages (thread, json) VALUES (?, ?)')
  const select = database.prepare('SELECT json FROM messages WHERE thread = ? ORDER BY rowid')
  return {
    async turn(thread, message) {
      const messages = select.all(thread).map(({ json }) => JSON.parse(json as string) as object)
      const add = (one: object): void => {
        insert.run(thread, JSON.stringify(one))
        messages.push(one)
      }
      add({ role: 'user', content: message })
      for (;;) {
        const all = [{ role: 'system', content: instructions }, ...messages]
        const response = await fetch(`${baseUrl}/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
          body: JSON.stringify({ model: 'turn', messages: all, tools }),
        })
        const { message: said } = ((await response.json()) as Answer).choices[0]
        add(said)
        if (!said.tool_calls) return said.content
        for (const { id, function: called } of said.tool_calls) {
          const { id: wanted } = JSON.parse(called.arguments) as { id: number }
          add({ role: 'tool', tool_call_id: id, content: JSON.stringify(lookUp(wanted)) })
        }
      }
    },
  }
}
