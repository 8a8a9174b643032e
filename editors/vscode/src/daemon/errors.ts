import { ConnectionLost } from './connection';
import { codes } from './protocol';

/** Returns the text to show for an error of the daemon. */
export function messageOf(error: unknown): string {
  if (error instanceof ConnectionLost) {
    return error.message;
  }
  const e = error as { code?: number; message?: string; data?: { errors?: string[]; reason?: string } };
  const message = e.message ?? String(error);
  const [first, ...more] = e.code === codes.validationFailed ? e.data?.errors ?? [] : [];
  if (first !== undefined) {
    return `The suite is invalid: ${first}${more.length > 0 ? ` (and ${more.length} more)` : ''}`;
  }
  const reason = e.data?.reason;
  return reason === undefined || message.includes(reason) ? message : `${message}: ${reason}`;
}
