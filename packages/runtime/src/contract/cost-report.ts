import type { CostUsd } from './thread-info.ts'

/** The tokens and US dollars that a thread and its descendants have spent. */
export interface CostReport {
  readonly threadId: string
  readonly tokens: number
  readonly costUsd: CostUsd
  readonly byModel: Readonly<
    Record<string, { readonly tokens: number; readonly costUsd: CostUsd; readonly calls: number }>
  >
  readonly byThread: Readonly<
    Record<string, { readonly agent: string; readonly tokens: number; readonly costUsd: CostUsd }>
  >
}
