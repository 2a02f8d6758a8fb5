import type { Turn, UPPError } from '@skein/ai'
import { RESIDENCY_CODE } from '@skein/ai/routing'
import { isPlainObject, type JsonObject } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'

/** Returns what a fallback or route reports of its rule of residency; undefined without such a rule. */
export function residencyOf({ response }: Turn): JsonObject | undefined {
  const reports = Object.values(response.metadata ?? {})
  return reports.find(
    ({ residency, excluded }) => residency !== undefined && Array.isArray(excluded),
  )
}

/** Returns what is recorded of a request that no model could be sent under the rule; undefined for other failures. */
export function residencyRefusal({
  vendorCode,
  vendorType,
  hint,
}: UPPError): JsonObject | undefined {
  if (vendorCode !== RESIDENCY_CODE) return undefined
  return { residency: vendorType ?? '', refused: true, reason: hint ?? '' }
}

/** Writes a decision about residency to the audit log of the thread, before anything that relies on it. */
export async function commitResidency(
  context: DrainContext,
  facts: JsonObject | undefined,
): Promise<void> {
  if (!isPlainObject(facts)) return
  const { environment, head, agent } = context
  const decision = {
    head,
    agent: agent.name,
    facts: JSON.parse(JSON.stringify(facts)) as JsonObject,
  }
  const governance = await environment.governors.recordResidency(decision)
  await context.commit('residency', { governance })
}
