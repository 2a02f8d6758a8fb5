import type { LLMRequest } from '@skein/ai'
import { checkTranscript } from '@skein/ai/testing'
import { anthropicMessages, chatDialect, openaiChat } from '@skein/ai/wires'
import type { JsonValue } from '@skein/base'
import { verifyAudit } from '@skein/runtime'
import { exportAudit } from '../../../src/governance/audit-export.ts'
import type { Finished } from './finished.ts'

/** Every vendor would have taken every request. */
export function requestsAreStrict({ world }: Finished): void {
  for (const request of world.requests) {
    if (request.messages.length === 0) world.violate('A model was asked nothing.')
    for (const issue of issuesOf(request)) world.violate(`A request breaks a rule: ${issue}`)
  }
}

function issuesOf(request: LLMRequest): string[] {
  const target = { provider: 'simulated', modelId: 'm' }
  const anthropic = anthropicMessages.encodeRequest(
    request,
    { ...target, dialect: { maxTokens: 99 } },
    'stream',
  )
  const openai = openaiChat.encodeRequest(request, { ...target, dialect: chatDialect }, 'stream')
  const read = (text: string) => JSON.parse(text) as JsonValue
  return [
    ...checkTranscript('anthropic-messages', read(anthropic.body)),
    ...checkTranscript('openai-chat', read(openai.body)),
  ].map(({ rule, message }) => `${rule}: ${message}`)
}

/** The audit log of every tree verifies. */
export async function auditsVerify({ world, threads }: Finished): Promise<void> {
  for (const { head } of threads.values()) {
    if (head.parentId !== null) continue
    const audit = await exportAudit(world.stored.store, head.id, world.keys)
    if (audit.lines.length === 0) continue
    const { ok, faults } = await verifyAudit(audit, { keys: [world.keys.log.jwk] })
    if (!ok) world.violate(`The audit log of ${head.id} does not verify: ${JSON.stringify(faults)}`)
  }
}
