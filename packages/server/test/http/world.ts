import { KEYS, type Kit } from './http-kit.ts'

/** A thread with one of everything that a path can name, and its child. */
export interface World {
  readonly threadId: string
  readonly childId: string
  /** Values for the names in paths. */
  readonly params: Readonly<Record<string, string>>
}

/** Builds it as ada, who is one of acme. */
export async function buildWorld({ runtime }: Kit): Promise<World> {
  const { threads, inbox } = runtime
  const { tenant, user = '' } = KEYS.ada
  const { id } = await threads.create({ agent: 'desk', tenant, owner: user, title: 'Of ada' })
  await threads.run(id, 'Please work.')
  await threads.run(id, 'Now the secret work.')
  await threads.files.write(id, '/notes/a.txt', new TextEncoder().encode('canary-file'), {
    mediaType: 'text/plain',
  })
  await threads.values.set(id, 'colour', 'canary-value')
  await threads.env.set(id, 'NAME', 'canary-env')
  await runtime.users.values.set({ tenant, user }, 'colour', 'canary-of-user')
  const effectId = await threads.effects.schedule(id, 'remind', {}, 3_600_000)
  const { grantId } = await threads.grants.make(id, { tool: 'note', forMs: 60_000, by: user })
  await threads.run(id, 'And a refund.')
  const { queueId } = await threads.send(id, 'One more thing.')
  const [waiting] = (await inbox.list({ tenant })).filter(
    ({ threadId, kind }) => threadId === id && kind === 'approval',
  )
  const events = await threads.events(id)
  const child = events.flatMap(({ event }) => (event.type === 'subagent_created' ? [event] : []))[0]
  const asked = events.flatMap(({ event }) =>
    event.type === 'variables_requested' ? [event] : [],
  )[0]
  const [message] = await threads.messages(id)
  const [log] = await threads.logs(id)
  if (!child || !waiting || !asked || !message || !log)
    throw new Error('The world lacks something.')
  return {
    threadId: id,
    childId: child.reference,
    params: {
      threadId: id,
      messageId: message.id,
      queueId,
      path: 'notes/a.txt',
      key: 'colour',
      name: 'NAME',
      requestId: asked.requestId,
      interruptId: waiting.interruptId,
      effectId,
      grantId,
      logId: log.logId,
      agent: 'desk',
      tool: 'note',
      user,
    },
  }
}

/** A path with its names filled in; `rest*` keeps its slashes. */
export function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)(\*?)\}/g, (_, name: string, rest: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`No value for {${name}} in ${path}.`)
    return rest ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value)
  })
}
