import type { ReactNode } from 'react'
import { money } from './format.ts'

/** A cost in US dollars, or the word unknown. */
export function Cost({ usd }: { readonly usd: number | null | undefined }): ReactNode {
  const isKnown = usd !== null && usd !== undefined
  return (
    <span
      className="num"
      title={isKnown ? `${usd} US dollars` : 'A model that was used has no known price.'}
    >
      {money(usd)}
    </span>
  )
}
