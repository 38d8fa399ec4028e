"""Before anyone trains: are environment and expert what they are taken for, and is there anything to be won?"""

from aggrevated.doctor.diagnosis import Diagnosis as Diagnosis
from aggrevated.doctor.diagnosis import diagnose as diagnose
from aggrevated.doctor.findings import Finding as Finding
