/** Texts with which a model could take over a terminal, by what they do there. */
export const HOSTILE: Readonly<Record<string, string>> = {
  'set the title (OSC 0)': '\u001b]0;PWNED\u0007',
  'write the clipboard (OSC 52)': '\u001b]52;c;UFdORUQ=\u001b\\',
  'a link (OSC 8)': '\u001b]8;;http://evil.example\u001b\\here\u001b]8;;\u001b\\',
  'clear the screen (CSI 2 J)': '\u001b[2J',
  'go home (CSI H)': '\u001b[H',
  'go up and overwrite': '\u001b[1A\u001b[2Kapproved: nothing',
  'conceal (SGR 8)': '\u001b[8mhidden\u001b[0m',
  'ask the terminal (DA, DSR)': '\u001b[c\u001b[6n',
  'a device string (DCS)': '\u001bPq#0\u001b\\',
  'a privacy message (PM, APC)': '\u001b^x\u001b\\\u001b_x\u001b\\',
  'reset (RIS)': '\u001bc',
  'C1 CSI': '\u009b31m\u009b2J',
  'C1 OSC': '\u009d0;PWNED\u009c',
  'a bare carriage return': 'Pays 1,000,000\rPays 1        ',
  backspaces: 'pay 9\b1',
  'a bell and a shift': '\u0007\u000e\u000f',
  delete: 'x\u007fy',
  'bidi override': '\u202egnp.exe\u202c',
  'bidi isolates': '\u2066\u2067abc\u2069',
  'line separators': 'a\u2028b\u2029c\u0085d',
  'zero width': 'pay\u200bpal\ufeff.com',
  'vertical tab and form feed': 'a\u000bb\u000cc',
  NUL: 'a\0b',
}

/** A call whose last argument three thousand spaces push off the screen. */
export const HIDDEN_ARGUMENT = 'to-the-attacker'
export const SPACES: string = ' '.repeat(3000)
