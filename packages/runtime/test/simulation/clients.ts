import { type JsonObject, SkeinError } from '@skein/base'
import type { EmbeddedRuntime, SendMessage, WaitingItem } from '@skein/runtime'
import { IF_BUSY } from '../../src/contract/send-message.ts'
import type { Lane } from '../../src/testing/simulation.ts'
import { chanceOf } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { effectFor } from './laws-effects.ts'
import type { GrantNote } from './laws-grants.ts'
import { USER } from './laws-limits.ts'
import { Reader } from './reader.ts'
import { strike } from './strikes.ts'
import type { Supervisor } from './supervisor.ts'
import type { RootAgent, World } from './world.ts'

/** A message whose sender was told that it arrived. */
export interface SentMessage {
  readonly threadId: string
  readonly messageId: string
}

/** People and programs outside: they send, stop, answer and edit, and try again after a crash. */
export class Clients {
  readonly sent: SentMessage[] = []
  /** Messages whose sender was told that the thread was busy. */
  readonly rejected: SentMessage[] = []
  /** How each message was to be sent to a busy thread. */
  readonly policies: Map<string, SendMessage['ifBusy']> = new Map()
  readonly roots: string[] = []
  /** The grants that people were told they had made or revoked. */
  readonly grants: GrantNote[] = []
  reader: Reader | undefined
  readonly #world: World
  readonly #supervisor: Supervisor
  readonly #lane: Lane
  /** The number of effects that were scheduled from outside. */
  #effects = 0

  constructor(world: World, supervisor: Supervisor, coverage: Coverage) {
    this.#world = world
    this.#supervisor = supervisor
    this.#lane = world.time.scheduler.lane('client')
    const act = (what: string, work: (runtime: EmbeddedRuntime) => Promise<unknown>): void =>
      void this.#do(what, work)
    strike(world, { supervisor, coverage, act, policies: this.policies })
  }

  /** Everything that is done from outside before the end. */
  async run(): Promise<void> {
    const { roots } = this.#world.plan
    await Promise.all(roots.map((agent, index) => this.#converse(agent, index)))
  }

  async #converse(agent: RootAgent, index: number): Promise<void> {
    const { chance, plan, canary } = this.#world
    const secrets: Record<string, string> = plan.hasSecrets ? { API_KEY: canary.secret } : {}
    const env = { MOOD: 'fine' }
    const clientId = `client-${index}`
    const first = chance.happens(0.5)
      ? { message: { text: 'm0', messageId: `first-${index}` } }
      : {}
    const owner = plan.hasLimits ? USER.user : undefined
    const created = { agent, clientId, secrets, env, owner, ...first }
    const thread = await this.#do('create', (runtime) => runtime.threads.create(created))
    if (!thread) return
    this.roots.push(thread.id)
    if (plan.hasReader && !this.reader) this.#watch(thread.id)
    if (first.message) this.sent.push({ threadId: thread.id, messageId: first.message.messageId })
    const granting = plan.hasGrants ? this.#grant(thread.id, index) : undefined
    const sending: Promise<void>[] = []
    for (let count = 0; count < plan.messages; count++) {
      await this.#pause()
      // Some people do not wait for the confirmation before they write on.
      sending.push(this.#send(thread.id, `t${index}-m${count}`))
      if (chance.happens(0.5)) await Promise.all(sending)
      if (chance.happens(plan.unrest)) await this.#meddle(thread.id)
      if (chance.happens(plan.unrest)) await this.#meddle(thread.id)
    }
    await Promise.all([...sending, granting])
  }

  /** Makes grants for the payments of a thread, short and long ones, and revokes some while it pays. */
  async #grant(threadId: string, index: number): Promise<void> {
    const { seed, time } = this.#world
    const chance = chanceOf(seed ^ (0x6a_4a58 + index))
    const by = 'ann'
    for (let count = chance.between(1, 3); count > 0; count--) {
      for (let turns = chance.below(60); turns >= 0; turns--) await this.#lane.turn('client')
      // In real time nobody knows which of a start and an end within milliseconds came first.
      const times = time.nodes === 1 ? [200, 60_000, 3_600_000] : [60_000, 3_600_000]
      const wanted = { tool: 'pay', forMs: chance.pick(times), by }
      const made = await this.#do('grant', ({ threads }) => threads.grants.make(threadId, wanted))
      if (!made) continue
      const { grantId } = made
      this.grants.push({ threadId, grantId, type: 'grant_made' })
      if (chance.happens(0.3)) continue
      for (let turns = chance.below(60); turns >= 0; turns--) await this.#lane.turn('client')
      const revoke = ({ threads }: EmbeddedRuntime) =>
        threads.grants.revoke(threadId, grantId, { by })
      const revoked = await this.#do('revoke', async (runtime) => (await revoke(runtime), true))
      if (revoked) this.grants.push({ threadId, grantId, type: 'grant_revoked' })
    }
  }

  #watch(threadId: string): void {
    this.reader = new Reader(this.#world, this.#supervisor)
    this.reader
      .watch(threadId)
      .catch((error: unknown) => this.#world.violate(`The reader failed: ${String(error)}`))
  }

  async #send(threadId: string, messageId: string): Promise<void> {
    const { chance } = this.#world
    const ifBusy = chance.happens(0.5) ? undefined : chance.pick(IF_BUSY)
    this.policies.set(messageId, ifBusy)
    const message = { text: messageId, messageId, ifBusy }
    const send = () => this.#do('send', (runtime) => runtime.threads.send(threadId, message))
    const both = chance.happens(0.15) ? await Promise.all([send(), send()]) : [await send()]
    if (chance.happens(0.1)) both.push(await send())
    if (both.some((one) => one)) this.sent.push({ threadId, messageId })
    else if (ifBusy === 'reject') this.rejected.push({ threadId, messageId })
    if (!chance.happens(this.#world.plan.unrest / 4)) return
    await this.#do('unsend', (runtime) => runtime.threads.unsend(threadId, messageId))
  }

  /** Waits for a turn, or for some time. */
  async #pause(): Promise<void> {
    const { chance, time } = this.#world
    if (chance.happens(0.3)) {
      const ms = time.scaled(chance.pick([0, 5, 500, 40_000]))
      await new Promise<void>((resolve) => time.timers.set(ms, resolve))
    }
    for (let turns = chance.below(25); turns >= 0; turns--) await this.#lane.turn('client')
  }

  async #meddle(root: string): Promise<void> {
    const { chance, canary } = this.#world
    await this.#pause()
    const id = await this.#someThread(root)
    const bytes = new TextEncoder().encode('hello')
    const actions: readonly ((runtime: EmbeddedRuntime) => Promise<unknown>)[] = [
      ({ threads }) => threads.stop(id),
      ({ threads }) => threads.stop(id),
      ({ threads }) => threads.stop(id, { afterStep: true }),
      ({ threads }) => threads.resume(id),
      ({ threads }) => threads.terminate(id),
      ({ threads }) => threads.values.set(id, 'k', chance.below(10)),
      ({ threads }) => threads.env.set(id, 'MOOD', `mood ${chance.below(10)}`),
      ({ threads }) => threads.env.set(id, 'API_KEY', canary.secret, { type: 'secret' }),
      ({ threads }) => threads.files.write(id, `/note-${chance.below(3)}.txt`, bytes),
      ({ threads }) => {
        const ref = `e${++this.#effects}`
        return threads.effects.schedule(id, effectFor(this.#effects), { ref }, { delayMs: 100 })
      },
      (runtime) => this.#edit(runtime, id),
    ]
    const { focus } = this.#world.plan
    const wanted =
      focus === 'cascade' ? actions[4] : focus === 'partial_answer' ? actions[0] : undefined
    await this.#do('meddle', (chance.happens(0.5) ? wanted : undefined) ?? chance.pick(actions))
  }

  async #edit({ threads }: EmbeddedRuntime, id: string): Promise<void> {
    const { chance } = this.#world
    const messages = (await threads.messages(id)).filter(({ message }) => message.type === 'user')
    if (messages.length === 0) return
    const { id: messageId } = chance.pick(messages)
    if (chance.happens(0.5)) await threads.updateMessage(id, messageId, 'edited')
    else await threads.deleteMessage(id, messageId)
  }

  async #someThread(root: string): Promise<string> {
    const { chance, stored } = this.#world
    if (chance.happens(0.6)) return root
    const all = await stored.store.list({ rootId: root, sort: 'oldest', limit: 1000 })
    return all.length === 0 ? root : chance.pick(all).id
  }

  /** Answers some of what waits, ends what would never end. False when there was nothing to do. */
  async settle(): Promise<boolean> {
    const { chance, stored } = this.#world
    let hasActed = false
    const items = (await this.#do('inbox', ({ inbox }) => inbox.list())) ?? []
    for (const item of items) {
      if (chance.happens(0.2)) continue
      hasActed = true
      await this.#answer(item)
    }
    hasActed ||= items.length > 0
    for (const { id, lifecycle } of await stored.store.list({ sort: 'oldest', limit: 1000 })) {
      if (lifecycle === 'terminated' || lifecycle === 'erased') continue
      hasActed = (await this.#endCalendars(id)) || hasActed
      hasActed = (await this.#provide(id)) || hasActed
      const isStuck = await this.#isStuck(id)
      if (!isStuck && (lifecycle !== 'stopped' || !chance.happens(0.3))) continue
      hasActed = true
      await this.#do('resume', ({ threads }) => threads.resume(id))
    }
    return hasActed
  }

  /** Takes everything out that can be taken out, for those who look for secrets. */
  async exportAll(): Promise<void> {
    const { stored, outputs } = this.#world
    const { runtime } = await this.#supervisor.up()
    for (const { id } of await stored.store.list({ sort: 'oldest', limit: 1000 })) {
      const { threads } = runtime
      const logs = await threads.logs(id)
      const details = await Promise.all(logs.map(({ logId }) => threads.log(id, logId)))
      const all = [
        await threads.document(id),
        await threads.children(id),
        await threads.env.list(id),
        details,
      ]
      outputs.push({ where: 'the export', text: await threads.export(id) })
      outputs.push({ where: 'the document, the logs or the variables', text: JSON.stringify(all) })
    }
  }

  /** Whether the thread was parked because nobody got it on. */
  async #isStuck(id: string): Promise<boolean> {
    const events = await this.#world.stored.store.events(id)
    const last = events.findLast(
      ({ event: { type, ...event } }) =>
        type === 'session_start' ||
        type === 'resume_requested' ||
        ('code' in event && event.code === 'DRAIN_FAILED'),
    )
    return last?.event.type === 'error_raised'
  }

  async #answer(item: WaitingItem): Promise<void> {
    const { chance, ledger, plan } = this.#world
    const { threadId, interruptId, kind } = item
    const by = 'ann'
    if (kind === 'approval') {
      const isFine = chance.happens(0.7)
      const isChanged = item.effectId === undefined && chance.happens(0.3)
      const ref = `c${chance.below(1e9)}`
      const given = (item.sentArguments ?? item.arguments) as JsonObject
      const changed = isChanged && { with: { ...given, ref } }
      const decide = (runtime: EmbeddedRuntime) =>
        isFine
          ? runtime.inbox.approve({ threadId, interruptId, by, ...changed })
          : runtime.inbox.deny({ threadId, interruptId, by, reason: 'no' })
      await this.#do('decide', decide)
      if (chance.happens(0.2)) await this.#do('decide again', decide)
      return
    }
    const question = item.question as { arguments?: { ref?: string } } | undefined
    const ref = question?.arguments?.ref ?? ''
    const isThere = ledger.has(item.toolName, ref)
    // While its code runs, or a given-up runtime may still be at it, nobody can say that it did not happen.
    const isOpen = plan.hasZombies || ledger.isOpen(item.toolName, ref)
    if (!isThere && isOpen && chance.happens(0.5)) return
    const known = isThere ? 'applied' : isOpen ? 'unknown' : 'absent'
    if (kind === 'in_doubt') {
      await this.#do('settle', ({ inbox }) => inbox.settle({ threadId, interruptId, by }, known))
      return
    }
    const value = `answer ${chance.below(100)}`
    await this.#do('answer', ({ inbox }) =>
      inbox.answer({ threadId, interruptId, by }, { type: 'result', value }),
    )
  }

  async #endCalendars(id: string): Promise<boolean> {
    const effects = (await this.#do('effects', ({ threads }) => threads.effects.list(id))) ?? []
    const endless = effects.filter(({ cron }) => cron !== undefined)
    for (const effect of endless)
      await this.#do('remove', ({ threads }) => threads.effects.remove(id, effect.id))
    return endless.length > 0
  }

  async #provide(id: string): Promise<boolean> {
    const { stored, canary } = this.#world
    const events = await stored.store.events(id)
    const settled = new Set(
      events.flatMap(({ event }) => (event.type === 'variables_provided' ? event.requestId : [])),
    )
    let hasActed = false
    for (const { event } of events) {
      if (event.type !== 'variables_requested' || settled.has(event.requestId)) continue
      if (Date.parse(event.expiresAt) <= this.#world.clock.now()) continue
      hasActed = true
      const values = Object.fromEntries(event.missing.map((name) => [name, canary.secret]))
      void this.#do('provide', ({ threads }) =>
        threads.variables.provide(id, event.requestId, values),
      )
      await this.#lane.turn('client')
    }
    return hasActed
  }

  /** Refusals of the runtime are fine; anything else is not. */
  async #do<T>(
    what: string,
    work: (runtime: EmbeddedRuntime) => Promise<T>,
  ): Promise<T | undefined> {
    await this.#lane.turn(`client ${what}`)
    try {
      return await this.#supervisor.call(work)
    } catch (error) {
      const text =
        error instanceof Error ? `${error.message}\n${String(error.stack)}` : String(error)
      this.#world.outputs.push({ where: what, text })
      if (!SkeinError.is(error) || error.name !== 'RuntimeError')
        this.#world.violate(`"${what}" failed with ${text}`)
      return undefined
    }
  }
}
