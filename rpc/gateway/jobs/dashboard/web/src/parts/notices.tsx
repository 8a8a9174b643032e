import { dismiss, notices } from '../net/notices';
import { useStore } from '../net/store';

export function Notices() {
  const list = useStore(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {list.map((n) => (
        <div key={n.id} class={`notice ${n.kind}`}>
          <span>{n.text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(n.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
