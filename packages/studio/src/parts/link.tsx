import type { AnchorHTMLAttributes, ReactNode } from 'react'
import { Link } from 'wouter'
import { writeAddress, type Address } from '../state/address.ts'

/** A link to another address of the page. */
export function To({
  address,
  children,
  ...rest
}: {
  readonly address: Address
  /** Whether the new address replaces the present one in the browser's history. */
  readonly replace?: boolean
  readonly children: ReactNode
} & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'>): ReactNode {
  return (
    <Link href={writeAddress(address)} {...rest}>
      {children}
    </Link>
  )
}
