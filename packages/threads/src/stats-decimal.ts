import { ThreadError } from './issue.ts'

const SHAPE = /^([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?$/
/** Far beyond any price; it keeps `1e999999999` from asking for a gigabyte of digits. */
const MAX_EXPONENT = 1_000

/**
 * Adds two decimal numbers given as text, exactly: no float is involved, so a million prices of 0.1 make 100000.0.
 * The result has as many fraction digits as the longer operand, as Python's `Decimal` has.
 */
export function addDecimals(a: string, b: string): string {
  const [left, right] = [parse(a), parse(b)]
  const scale = Math.max(left.scale, right.scale)
  return print(raise(left, scale) + raise(right, scale), scale)
}

interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

function parse(text: string): Decimal {
  const match = SHAPE.exec(text.trim())
  const exponent = Number(match?.[3] ?? 0)
  if (!match || Math.abs(exponent) > MAX_EXPONENT) {
    throw new ThreadError(
      `The amount ${JSON.stringify(text.slice(0, 40))} is not a decimal number.`,
      {
        code: 'INVALID_DECIMAL',
        hint: 'Costs are decimal text such as "0.0125".',
      },
    )
  }
  const [whole = '', fraction = ''] = match[2]!.split('.')
  const digits = BigInt((match[1] === '-' ? '-' : '') + (whole + fraction || '0'))
  const scale = fraction.length - exponent
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}

function raise({ digits, scale }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(to - scale)
}

function print(digits: bigint, scale: number): string {
  if (scale === 0) return digits.toString()
  const sign = digits < 0n ? '-' : ''
  const text = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, '0')
  return `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}
