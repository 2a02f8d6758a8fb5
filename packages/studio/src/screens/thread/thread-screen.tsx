import type { ReactNode } from 'react'
import type { ThreadAddress } from '../../state/address.ts'
import { useTree } from '../../state/studio.ts'

/** One thread. */
export function ThreadScreen({ address }: { readonly address: ThreadAddress }): ReactNode {
  const tree = useTree(address.threadId)
  const thread = tree.threads.get(address.threadId)
  return <pre>{JSON.stringify(thread?.view, null, 1)}</pre>
}
