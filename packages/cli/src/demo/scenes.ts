import type { StoredEvent } from '@skein/runtime'
import type { Stage } from './stage.ts'

/** One line of the demo: a claim, and what was observed. */
export interface DemoLine {
  readonly name: string
  /** Whether what was observed is what Skein promises. */
  readonly isKept: boolean
  readonly text: string
  /** The thread in which it happened, for Studio. */
  readonly threadId: string
}

/** The name of a scene. */
export type SceneName = 'crash' | 'forgery' | 'undo' | 'evidence' | 'audit'

/** The scenes of the demo, in order. None needs another one. */
export const SCENES: Readonly<Record<SceneName, (stage: Stage) => Promise<readonly DemoLine[]>>> = {
  crash,
  forgery,
  undo,
  evidence,
  audit,
}

/** A process dies while a bank pays two refunds. One can be looked up, the other cannot. */
async function crash(stage: Stage): Promise<readonly DemoLine[]> {
  const card = await stage.ask('refunds', 'refund O-7 25')
  const transfer = await stage.ask('refunds', 'wire O-8 40')
  const { payments, answered } = await stage.book()
  const before = payments.length
  const waiting = [card.item, transfer.item].flatMap((item) => (item ? [callOf(item)] : []))
  const { threadId } = card
  const asked = {
    name: 'approval',
    isKept: waiting.length === 2 && before === 0,
    text: `${waiting.join(' and ') || 'No call'} ${waiting.length === 1 ? 'waits' : 'wait'} for a person; the bank was called ${times(before)}.`,
    threadId,
  }
  if (!card.item || !transfer.item) return [asked]

  await stage.hold(true)
  for (const item of [card.item, transfer.item])
    await stage.client.inbox.approve({ ...item, digest: item.request?.digest })
  await stage.untilPaid(before + 2)
  const signal = await stage.killAgents()
  const atDeath = await stage.book()
  const killed = {
    name: 'kill -9',
    isKept: signal === 'SIGKILL' && atDeath.answered === answered,
    text: `${signal} ended the agent. The bank had paid ${times(atDeath.payments.length - before)} and answered ${times(atDeath.answered - answered)}.`,
    threadId,
  }

  await stage.hold(false)
  await stage.startAgents()
  const resumed = await stage.client.threads.settled(card.threadId)
  const { lookups } = await stage.book()
  const refunds = await stage.count('refund', 'O-7')
  const once = {
    name: 'once',
    isKept: refunds === 1 && resumed.outcome === 'completed',
    text: `Started again, it ${lookups > 0 ? 'asked' : 'did not ask'} the bank about O-7, which was paid ${times(refunds)}: ${resumed.outcome}.`,
    threadId,
  }

  const [question] = (await stage.client.threads.settled(transfer.threadId)).waiting
  const detail = question && (await stage.client.inbox.get(question))
  const wires = await stage.count('wire', 'O-8')
  const inDoubt = {
    name: 'in doubt',
    isKept: wires === 1 && question?.kind === 'in_doubt',
    text: `O-8 was paid ${times(wires)}. ${detail ? `A person is asked: "${detail.sentence}"` : 'No person is asked.'}`,
    threadId: transfer.threadId,
  }
  if (question) {
    await stage.client.inbox.settle(question, 'applied')
    await stage.client.threads.settled(transfer.threadId)
  }
  return [asked, killed, once, inDoubt]
}

/** One approval is signed and used. The same signature is then presented for three calls for which it was not made. */
async function forgery(stage: Stage): Promise<readonly DemoLine[]> {
  const approved = 'refund O-5 30'
  const honest = await stage.ask('refunds', approved)
  const token = honest.item && (await stage.sign(honest.item))
  if (honest.item && token !== undefined) {
    await stage.client.inbox.approve({ ...honest.item, tokens: [token] })
    await stage.client.threads.settled(honest.threadId)
  }
  const other = await stage.client.threads.create({ agent: 'refunds' })
  const tries = [
    { name: 'amount', what: 'for 3000', text: 'refund O-5 3000', id: honest.threadId },
    { name: 'replay', what: 'once more', text: approved, id: honest.threadId },
    { name: 'thread', what: 'in another thread', text: approved, id: other.id },
  ]
  const lines: DemoLine[] = []
  for (const { name, what, text, id } of tries) {
    const before = await stage.count('refund', 'O-5')
    const { item } = await stage.ask('refunds', text, id)
    let code: string | undefined
    if (item && token !== undefined) {
      await stage.client.inbox.approve({ ...item, tokens: [token] })
      const { waiting } = await stage.client.threads.settled(id)
      code = lastGate(await stage.client.threads.events(id))
      const [open] = waiting
      if (open) await stage.client.inbox.deny({ ...open, reason: 'It was forged.' })
      await stage.client.threads.settled(id)
    }
    const paid = (await stage.count('refund', 'O-5')) - before
    lines.push({
      name,
      isKept: paid === 0 && code?.startsWith('APPROVAL_') === true,
      text: `Approval of "${approved}" used ${what}: ${code ?? 'nothing was asked'}, the bank paid ${times(paid)}.`,
      threadId: id,
    })
  }
  return lines
}

/** An exchange charges the difference, and then fails. */
async function undo(stage: Stage): Promise<readonly DemoLine[]> {
  const { threadId, outcome, text } = await stage.ask('exchange', 'Exchange the lamp of O-9.')
  const charged = await stage.count('charge', 'O-9')
  const cancelled = await stage.count('cancel_charge', 'O-9')
  return [
    {
      name: 'undo',
      isKept: outcome === 'failed' && charged === 1 && cancelled === 1,
      text: `The exchange ${outcome} ("${text}"): charged ${times(charged)}, cancelled ${times(cancelled)}.`,
      threadId,
    },
  ]
}

/** An agent says where an order is, and has not looked. */
async function evidence(stage: Stage): Promise<readonly DemoLine[]> {
  const { threadId, outcome, text } = await stage.ask('support', 'Where is O-9?')
  const messages = await stage.client.threads.messages(threadId)
  const said = messages.findLast(({ message }) => message.type === 'assistant')
  const hasLooked = messages.some(({ message }) => message.type === 'tool_result')
  const claim = textOf(said?.message.content ?? [])
  return [
    {
      name: 'evidence',
      isKept: said?.delivery === 'refused' && outcome === 'failed',
      text: `"${claim}" ${hasLooked ? 'after' : 'without'} looking it up: ${said?.delivery ?? 'delivered'}. The customer reads: "${text}"`,
      threadId,
    },
  ]
}

/** The audit log of a refund is verified, and once more after one byte of a copy was changed. */
async function audit(stage: Stage): Promise<readonly DemoLine[]> {
  const { threadId, item } = await stage.ask('refunds', 'refund O-4 10')
  if (item) await stage.client.inbox.approve({ ...item, digest: item.request?.digest })
  await stage.client.threads.settled(threadId)
  const log = await stage.client.threads.audit(threadId)
  const options = { keys: [log.publicKey] }
  const real = await stage.verify(log, options)
  const place = log.lines.findIndex((line) => line.includes('"args_hash"'))
  const changed = await stage.verify(
    { ...log, lines: log.lines.map((line, index) => (index === place ? oneByteOff(line) : line)) },
    options,
  )
  const [fault] = changed.faults
  const found = fault ? `refused, ${fault.detail}` : 'verified'
  return [
    {
      name: 'audit',
      isKept: real.ok && real.sealed === real.size && real.size > 0,
      text: `The audit log of a refund has ${real.size} entries, ${real.sealed} of them sealed: ${real.ok ? 'verified' : 'not verified'}.`,
      threadId,
    },
    {
      name: 'one byte',
      isKept: !changed.ok && fault !== undefined,
      text: `One byte of entry ${place} changed in a copy: ${found}.`,
      threadId,
    },
  ]
}

/** Changes the first digit of the hash of the arguments. */
function oneByteOff(line: string): string {
  return line.replace(
    /("args_hash":"sha256:)(.)/,
    (_, before: string, digit: string) => `${before}${digit === '0' ? '1' : '0'}`,
  )
}

/** The reasons that the gate gave last. */
function lastGate(events: readonly Pick<StoredEvent, 'event'>[]): string {
  const gate = events.findLast(({ event }) => event.type === 'gate_decided')?.event
  return gate?.type === 'gate_decided'
    ? (gate.reasonCodes ?? [gate.decision]).join(', ')
    : 'no gate'
}

function callOf({ toolName, arguments: args }: { toolName: string; arguments: unknown }): string {
  return [toolName, ...Object.values(args as object)].join(' ')
}

function textOf(content: readonly object[]): string {
  return content.map((block) => ('text' in block ? String(block.text) : '')).join('')
}

function times(count: number): string {
  return count === 1 ? '1 time' : `${count} times`
}
