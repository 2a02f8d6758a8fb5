import type { ReactNode } from 'react'

/** Everything that waits for a person. */
export function InboxScreen({ item }: { readonly item?: string }): ReactNode {
  return <div className="page">{item}</div>
}
