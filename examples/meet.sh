# Two aircraft that fly towards each other on the equator at 30,000 ft, a report of each every second.
# A conflict within five reports: watchkeeper/alarm/conflict/east~west
t0=$(date +%s)
for i in $(seq 0 9); do
  east=$(printf '0.%07d' $((i * 20797)))              # 450 kt are 0.0020797 degrees a second
  west=$(printf '0.%07d' $((4000000 - i * 20797)))
  mosquitto_pub -t telemetry/adsb/east -m "{\"t\":$((t0 + i)),\"lat\":0,\"lon\":$east,\"alt_ft\":30000,\"gs_kt\":450,\"trk_deg\":90,\"vs_fpm\":0}"
  mosquitto_pub -t telemetry/adsb/west -m "{\"t\":$((t0 + i)),\"lat\":0,\"lon\":$west,\"alt_ft\":30000,\"gs_kt\":450,\"trk_deg\":270,\"vs_fpm\":0}"
  sleep 1
done
