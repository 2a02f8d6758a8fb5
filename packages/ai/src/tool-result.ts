import { isDeepFrozen } from '@skein/base'
import type { ToolExecution, ToolResult } from './tool.ts'
import type { SettledCall } from './tool-executor.ts'

/** What the model is told about a call. Not for a deferred one: it has no result yet. */
export function toToolResult(settled: SettledCall): ToolResult {
  const { toolCallId, toolName, result, isError } = toToolExecution(settled)
  return { toolCallId, toolName, result, isError }
}

/** What the turn reports about a call (UPP §7.3). */
export function toToolExecution({ call, outcome, durationMs }: SettledCall): ToolExecution {
  const { toolCallId, toolName, arguments: args } = call
  const base = { toolName, toolCallId, arguments: args, duration: durationMs }
  switch (outcome.type) {
    case 'done':
      return { ...base, result: outcome.result, isError: false }
    case 'error':
      return { ...base, result: outcome.message, isError: true }
    case 'denied':
      return { ...base, result: outcome.reason, isError: true }
    case 'deferred':
      return { ...base, result: outcome.request, isError: false }
  }
}

/**
 * A tool's result as plain data of our own. Messages are frozen with all they hold, and the object a
 * tool returned may still be in use by the application. Bytes, dates and the like are shared.
 */
export function snapshot(value: unknown, seen: Map<object, unknown> = new Map()): unknown {
  if (typeof value !== 'object' || value === null || isDeepFrozen(value)) return value
  const known = seen.get(value)
  if (known !== undefined) return known
  if (Array.isArray(value)) {
    const copy: unknown[] = []
    seen.set(value, copy)
    for (const item of value) copy.push(snapshot(item, seen))
    return copy
  }
  if (Object.prototype.toString.call(value) !== '[object Object]') return value
  if (hasToJSON(value)) return snapshot(value.toJSON(), seen)
  const copy: Record<string, unknown> = {}
  seen.set(value, copy)
  for (const [key, item] of Object.entries(value))
    Object.defineProperty(copy, key, {
      value: snapshot(item, seen),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  return copy
}

function hasToJSON(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function'
}
