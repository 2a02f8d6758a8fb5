import type { Finished } from './finished.ts'

/** The canary is nowhere: not in requests, logs, errors, files or the bytes of the database. */
export async function secretsStaySecret({ world, threads }: Finished): Promise<void> {
  const { canary, requests, outputs, stored } = world
  const look = (where: string, text: string): void => {
    const found = canary.find(text)
    if (found !== undefined) {
      const at = text.indexOf(found)
      world.violate(`The secret is in ${where}: …${text.slice(Math.max(at - 80, 0), at + 60)}`)
    }
  }
  for (const { messages, system, tools } of requests)
    look('a request', JSON.stringify([messages, system, tools]))
  for (const { where, text } of outputs) look(`what ${where} gave`, text)
  for (const { head, events } of threads.values()) {
    for (const event of events) look(`the log of ${head.id} (${event.type})`, JSON.stringify(event))
    for (const { hash } of threads.get(head.id)!.state.files.values()) {
      const blob = await stored.store.blob(hash)
      if (blob) look(`a file of ${head.id}`, Buffer.from(blob).toString('latin1'))
    }
    for (const { line } of await stored.store.audit(head.id))
      look(`the audit log of ${head.id}`, line)
    look(`the head of ${head.id}`, JSON.stringify(head))
  }
  for (const bytes of await stored.bytes())
    look('the bytes of the database', bytes.toString('latin1'))
}
